"""Functions of NumPy in a form that can write into memory that is there, and those that make memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.extend import Array, strided

# Functions that make an array, and the one that makes the same array from a shape.
FRESH: dict[Any, Any] = {each: each for each in (np.empty, np.zeros, np.ones, np.full)}
FRESH.update({np.empty_like: np.empty, np.zeros_like: np.zeros, np.ones_like: np.ones, np.full_like: np.full})
FILLS: dict[Any, Any] = {np.zeros: 0, np.ones: 1}

__all__ = ["FILLS", "FRESH", "cast", "copied", "in_order", "reshaped", "strided"]


def cast(array: Array, dtype: Any, out: Array | None = None) -> Array:
    """Return the elements of an array in another dtype.

    Args:
        array: the array.
        dtype: that of the result.
        out: memory for the result, of this dtype and the shape of ``array``; new memory by default.
    """
    if out is None:
        return array.astype(dtype)
    np.copyto(out, array, casting="unsafe")
    return out


def copied(array: Array, order: Any, out: Array | None = None) -> Array:
    """Return a copy of an array.

    Args:
        array: the array.
        order: layout of the copy, as for ``ndarray.copy``.
        out: memory for the result, of that layout; new memory by default.
    """
    if out is None:
        return array.copy(order)
    np.copyto(out, array)
    return out


def in_order(array: Array, out: Array | None = None) -> Array:
    """Return an array whose elements are in order in memory: a copy, if they are not.

    Args:
        array: the array.
        out: memory for the copy; new memory by default.
    """
    if out is None:
        return np.ascontiguousarray(array)
    np.copyto(out, array)
    return out


def reshaped(array: Array, shape: Any, out: Array | None = None) -> Array:
    """Return the elements of an array in another shape: a view, or a copy if they are not in order in memory.

    Args:
        array: the array.
        shape: of the result.
        out: memory for the copy, in order; new memory by default.
    """
    if out is None:
        return array.reshape(shape)
    np.copyto(out.reshape(array.shape), array)
    return out
