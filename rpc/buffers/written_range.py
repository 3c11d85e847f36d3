"""Range of a buffer that a request writes, read from the beginning of its frame before the bytes have come."""

from __future__ import annotations

import io
import pickle
from typing import Any

from ...core.futures import attempt
from ..wire.frames import pickle_of


def written_range(front: memoryview) -> tuple[int, int, int] | None:
    """Return the number of the buffer, and the first byte and the end of the range; ``None`` if the frame does not say so.

    Nothing of the pickle is run: all but the numbers in it is skipped.

    Args:
        front: the frame of the request, without its piece.
    """
    body, _ = attempt(lambda: _Numbers(io.BytesIO(pickle_of(front))).load())
    if not isinstance(body, tuple) or len(body) != 4 or any(type(number) is not int for number in body[:3]):
        return None
    return body[:3]


class _Numbers(pickle.Unpickler):
    """Unpickler that makes no objects of classes."""

    def find_class(self, module: str, name: str) -> Any:
        return _skipped


def _skipped(*_: Any) -> None:
    """Return ``None``, for what is not made."""
