"""Reading, overwriting and adding at places of arrays, which may be named more than once.

A place is named by a NumPy index, or by its number in row-major order (``Flat``), which is several times faster.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...types import Array

FULL = slice(None)


class Flat:
    """Elements by their numbers in row-major order, all of them in range."""

    __slots__ = ("places",)

    def __init__(self, places: Array) -> None:
        self.places = places


def read_at(x: Array, where: Any) -> Array:
    """Return a copy of the elements at ``where``, in row-major order."""
    if type(where) is Flat:
        return np.asarray(x.take(where.places))
    if type(where) is tuple and where:
        last = where[-1]
        if type(last) is np.ndarray and last.dtype.kind in "iu" and _all_full(where):
            return x.take(last, len(where) - 1)  # several times faster than x[where]
    return np.array(x[where], order="C")


def _all_full(where: tuple[Any, ...]) -> bool:
    return len(where) == 1 or all(part is FULL for part in where[:-1])


def write_at(x: Array, where: Any, values: Any) -> None:
    """Overwrite the elements at ``where`` with ``values``."""
    if type(where) is Flat:
        x.put(where.places, values)
    elif x.dtype.kind == "V" and np.size(values) == 1:
        x[where] = np.reshape(values, ())  # a single element of bfloat16 takes no vector of one
    else:
        x[where] = values


def without(x: Array, where: Any) -> Array:
    """Return a copy with zeros at ``where``."""
    result: Array = np.array(x, order="C")
    write_at(result, where, 0)
    return result


def add_at(target: Array, where: Any, values: Any) -> Array:
    """Add ``values`` to ``target`` at ``where``, as often as each element is named; ``target`` is C-contiguous."""
    if not _names_twice(where):
        target[where] += values
        return target
    return apply_at(np.add, target, where, values)


def apply_at(ufunc: Any, target: Array, where: Any, values: Any) -> Array:
    """Run ``ufunc.at(target, where, values)``; ``target`` is C-contiguous.

    On one dimension that is fast, on several it is not, and sorting equal places together is in between: so places are
    counted through first.
    """
    places = linear_places(target.shape, where)
    values = np.asarray(values, target.dtype)
    if values.shape != places.shape:
        values = np.broadcast_to(values, places.shape)
    ufunc.at(target.reshape(-1), places.reshape(-1), values.reshape(-1))
    return target


def linear_places(shape: tuple[int, ...], where: Any) -> Array:
    """Return the places in row-major order, counted from 0."""
    if type(where) is Flat:
        return where.places
    if type(where) is tuple and len(where) == 1 and where[0].dtype.kind in "iu":
        rows, width = where[0], math.prod(shape[1:])
        if rows.size and rows.min() < 0:
            rows = np.where(rows < 0, rows + shape[0], rows)
        inner = np.arange(width, dtype=np.int64).reshape(shape[1:])
        places: Array = rows.reshape(rows.shape + (1,) * inner.ndim) * np.int64(width) + inner
        return places
    return np.asarray(np.arange(math.prod(shape)).reshape(shape)[where])


def _names_twice(where: Any) -> bool:
    if type(where) is Flat:
        return True
    parts = where if isinstance(where, tuple) else (where,)
    return any(isinstance(part, np.ndarray) and part.dtype.kind in "iu" for part in parts)


def along(places: Array, shape: tuple[int, ...], dim: int) -> Flat:
    """Return where ``gather`` reads in an array of ``shape``: at ``places`` along ``dim``, at its own position in others."""
    step = 1
    result: Any = 0
    for axis in reversed(range(len(shape))):
        if axis == dim:
            result = result + (places if step == 1 else places * np.int64(step))
        elif places.shape[axis] != 1:
            result = result + (np.arange(places.shape[axis]) * step).reshape((-1,) + (1,) * (places.ndim - axis - 1))
        step *= shape[axis]
    return Flat(np.asarray(result))
