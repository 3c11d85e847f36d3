"""``add_at``: adding to an array at places that may be named more than once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import Array


def add_at(target: Array, where: Any, values: Any) -> Array:
    """Add ``values`` to ``target`` at ``where``, as often as each element is named; ``target`` is C-contiguous.

    On one dimension ``np.add.at`` is fast, on several it is not, and sorting equal places together is in between: so
    places are counted through first.
    """
    if not _names_twice(where):
        target[where] += values
        return target
    places = linear_places(target.shape, where)
    flat = target.reshape(-1)
    values = np.asarray(values, target.dtype)
    if values.shape != places.shape:
        values = np.broadcast_to(values, places.shape)
    np.add.at(flat, places.reshape(-1), values.reshape(-1))
    return target


def linear_places(shape: tuple[int, ...], where: Any) -> Array:
    """The places in row-major order, counted from 0."""
    if type(where) is tuple and len(where) == 1 and where[0].dtype.kind in "iu":
        rows, width = where[0], int(np.prod(shape[1:]))
        if rows.size and rows.min() < 0:
            rows = np.where(rows < 0, rows + shape[0], rows)
        inner = np.arange(width, dtype=np.int64).reshape(shape[1:])
        places: Array = rows.reshape(rows.shape + (1,) * inner.ndim) * np.int64(width) + inner
        return places
    return np.arange(int(np.prod(shape))).reshape(shape)[where]


def _names_twice(where: Any) -> bool:
    parts = where if isinstance(where, tuple) else (where,)
    return any(isinstance(part, (np.ndarray, list)) and np.asarray(part).dtype.kind in "iu" for part in parts)
