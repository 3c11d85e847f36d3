"""Tensors of one dtype as one row, so that they travel in one message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core import Tensor
from ..core.extend import Array
from .arrays import fill, flat


def by_dtype(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """Return the tensors in lists of one dtype each, in their order."""
    found: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.dtype, []).append(tensor)
    return list(found.values())


def pack(tensors: Sequence[Tensor], dtype: Any) -> Array:
    """Return the elements of all tensors in a new row.

    Args:
        tensors: of one dtype; there may be none.
        dtype: theirs.
    """
    return np.concatenate([np.empty(0, dtype), *map(flat, tensors)], dtype=dtype)


def unpack(row: Array, tensors: Sequence[Tensor]) -> None:
    """Write the elements of a row into tensors, one after the other."""
    ends = np.cumsum([tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, np.split(row, ends[:-1]) if tensors else (), strict=True):
        fill(tensor, part)
