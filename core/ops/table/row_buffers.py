"""``RowBuffers``: a ``with`` block in which arithmetic with one number for each row of an array takes half the time.

NumPy computes 8192 elements at once. If rows are shorter, it first copies the number of each row so often into a buffer; if
buffers are not longer than rows, it needs none. The results have the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

_LARGE = 1 << 14  # elements: below that, the block itself costs more than it saves
_SHORT, _LONG = 512, 8192  # lengths of rows between which it saves time


def row_buffer(shape: tuple[int, ...]) -> int:
    """Return how many elements buffers should have for an array of this shape, with rows in the last dimension; 0: as usual."""
    length = shape[-1] if shape and math.prod(shape) >= _LARGE else 0
    return length - length % 16 if _SHORT <= length < _LONG else 0


def in_row_buffers(size: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a ufunc with buffers of ``size`` elements, and return its result."""
    former = np.setbufsize(size)
    try:
        return function(*args, **kwargs)
    finally:
        np.setbufsize(former)


class RowBuffers:
    """A block whose calls have buffers as long as rows.

    Args:
        x: an array whose rows lie in its last dimension.
        axis: the dimension in which all elements have the same number; if it is not the last, the block changes nothing.
    """

    __slots__ = ("_former", "_size")

    def __init__(self, x: Any, axis: int | None = -1) -> None:
        self._size = row_buffer(x.shape) if axis in (-1, x.ndim - 1) else 0

    def __enter__(self) -> None:
        if self._size:
            self._former = np.setbufsize(self._size)

    def __exit__(self, *error: object) -> None:
        if self._size:
            np.setbufsize(self._former)
