"""Reading, overwriting and adding elements of arrays at an index, which may name an element more than once.

The index is one of NumPy's, or a ``LinearIndex``: the numbers of the elements in row-major order, which is several times
faster.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...array_like import ArrayLike, as_array
from ...dtypes import wide
from ...types import Array

FULL = slice(None)
_MANY = 1 << 12  # elements, from which on they are added in pairs
_NUMBERS = 1 << 15  # of elements of an array, up to which they are kept


class LinearIndex:
    """Index of elements by their numbers in row-major order, all of them in range."""

    __slots__ = ("indices",)

    def __init__(self, indices: Array) -> None:
        self.indices = indices


def model_of(array: Array) -> Array | None:
    """Return what NumPy's ``like`` takes: the gradient of one element may be a NumPy scalar, which ``like`` refuses."""
    return None if isinstance(array, np.generic) else array


def read_at(x: Array, where: Any) -> Array:
    """Return a C-contiguous copy of the elements at ``where``."""
    if type(where) is LinearIndex:
        return np.asarray(x.take(where.indices))
    if type(where) is tuple and where:
        last = where[-1]
        if isinstance(last, (np.ndarray, ArrayLike)) and last.dtype.kind in "iu" and _all_full(where):
            return x.take(last, len(where) - 1)  # several times faster than x[where]
    return as_array(x[where]).copy()


def _all_full(where: tuple[Any, ...]) -> bool:
    return len(where) == 1 or all(part is FULL for part in where[:-1])


def write_at(x: Array, where: Any, values: Any) -> None:
    """Overwrite the elements at ``where``.

    Args:
        x: the array to change.
        where: an index of NumPy, or ``LinearIndex``.
        values: broadcast to the shape of ``x[where]``.
    """
    if type(where) is LinearIndex:
        x.put(where.indices, values)
    elif x.dtype.kind == "V" and np.size(values) == 1:
        x[where] = np.reshape(values, ())  # NumPy cannot write a vector of one element to an element of bfloat16
    else:
        x[where] = values


def without(x: Array, where: Any) -> Array:
    """Return a copy with zeros at ``where``."""
    result: Array = np.array(x, order="C")
    write_at(result, where, 0)
    return result


def add_at(target: Array, where: Any, values: Any) -> Array:
    """Add to the elements at ``where``, as many times as each is named, and return ``target``.

    Args:
        target: the array to change, C-contiguous.
        where: an index of NumPy, or ``LinearIndex``.
        values: broadcast to the shape of ``target[where]``.
    """
    if not _may_repeat(where):
        target[where] += values
        return target
    if isinstance(target, ArrayLike):
        target.written(add_at, where, values)
        return target
    return apply_at(np.add, target, where, values)


def apply_at(ufunc: Any, target: Array, where: Any, values: Any) -> Array:
    """Run ``ufunc.at(target, where, values)``, and return ``target``.

    That is fast on one dimension and slow on more, and sorting the elements by their index is in between. So the index is
    converted to numbers in row-major order first.

    Args:
        ufunc: a function of NumPy of two arguments.
        target: the array to change, C-contiguous.
        where: an index of NumPy, or ``LinearIndex``.
        values: broadcast to the shape of ``target[where]``.
    """
    result = wide(target)  # in 16 bits a sum of many stops growing
    values = np.asarray(values, result.dtype)
    numbers = result
    if ufunc is np.add and _in_pairs(result, where):  # two real numbers at a time are added as one complex number
        pair = np.result_type(result.dtype, np.complex64)
        shape = where[0].shape + result.shape[1:]
        values = values if values.shape == shape else np.broadcast_to(values, shape)
        values = np.ascontiguousarray(values).view(pair)
        numbers = result.view(pair)
    indices = linear_index(numbers.shape, where)
    if values.shape != indices.shape:
        values = np.broadcast_to(values, indices.shape)
    ufunc.at(numbers.reshape(-1), indices.reshape(-1), values.reshape(-1))
    if result is not target:
        target[...] = result
    return target


def _in_pairs(target: Array, where: Any) -> bool:
    """Return whether ``where`` names many rows of an even number of real floating-point numbers."""
    if not (type(where) is tuple and len(where) == 1 and where[0].dtype.kind in "iu"):
        return False
    even = target.ndim > 1 and target.dtype.kind == "f" and target.shape[-1] % 2 == 0
    return even and bool(where[0].size * math.prod(target.shape[1:]) >= _MANY)


def linear_index(shape: tuple[int, ...], where: Any) -> Array:
    """Return the numbers in row-major order, from 0, of the elements of an array of ``shape`` at the index ``where``."""
    if type(where) is LinearIndex:
        return where.indices
    if type(where) is tuple and len(where) == 1 and where[0].dtype.kind in "iu":
        rows, width = where[0], math.prod(shape[1:])
        if 0 < shape[0] * width <= _NUMBERS and not isinstance(rows, ArrayLike):
            found: Array = _numbers(shape[0], width).take(rows, 0).reshape(rows.shape + shape[1:])
            return found
        if rows.size and rows.min() < 0:
            rows = np.where(rows < 0, rows + shape[0], rows)
        inner = np.arange(width, dtype=np.int64).reshape(shape[1:])
        indices: Array = rows.reshape(rows.shape + (1,) * inner.ndim) * np.int64(width) + inner
        return indices
    return np.asarray(np.arange(math.prod(shape)).reshape(shape)[where])


@lru_cache(maxsize=16)
def _numbers(rows: int, width: int) -> Array:
    """Return the numbers of the elements of each row: to copy them takes a third of the time of adding them up."""
    numbers = np.arange(rows * width).reshape(rows, width)
    numbers.flags.writeable = False
    return numbers


def _may_repeat(where: Any) -> bool:
    if type(where) is LinearIndex:
        return True
    parts = where if isinstance(where, tuple) else (where,)
    return any(isinstance(part, (np.ndarray, ArrayLike)) and part.dtype.kind in "iu" for part in parts)


def gather_index(indices: Array, shape: tuple[int, ...], dim: int) -> LinearIndex:
    """Return the elements that ``gather`` reads.

    Args:
        indices: index in dimension ``dim`` for each element of the result; in other dimensions it is the element's own.
        shape: shape of the array that is read.
        dim: the dimension, from 0.
    """
    step = 1
    result: Any = 0
    for axis in reversed(range(len(shape))):
        if axis == dim:
            result = result + (indices if step == 1 else indices * np.int64(step))
        elif indices.shape[axis] != 1:
            result = result + (np.arange(indices.shape[axis]) * step).reshape((-1,) + (1,) * (indices.ndim - axis - 1))
        step *= shape[axis]
    return LinearIndex(np.asarray(result))
