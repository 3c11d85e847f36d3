"""Evaluation of special functions on arrays: precision, blocks that stay in the processor's cache, and polynomials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...types import Array, DType

Function = Callable[[Array], Array]
BLOCK = 16384  # elements; twice as fast as whole arrays for functions that need many arrays
LONG_BLOCK = 1 << 16  # a fourth faster than that for functions that need few


def in_double(function: Function, x: Any) -> Array:
    """Return ``function(x)`` computed in float64 and rounded to the dtype of ``x``.

    Raises:
        TypeError: ``x`` is complex.
    """
    return _by_blocks(function, np.asarray(x), np.dtype(np.float64))


def in_single_or_double(single: Function, double: Function, x: Any, block: int = BLOCK) -> Array:
    """Return ``double(x)`` computed in float64; for dtypes of at most 32 bits, ``single(x)`` computed in float32.

    Args:
        single, double: functions of one-dimensional arrays.
        x: any shape.
        block: elements that ``single`` gets at once.

    Raises:
        TypeError: ``x`` is complex.
    """
    x = np.asarray(x)
    return in_double(double, x) if x.dtype.itemsize > 4 else _by_blocks(single, x, np.dtype(np.float32), block)


def _by_blocks(function: Function, x: Array, dtype: DType, block: int = BLOCK) -> Array:
    if x.dtype.kind == "c":
        raise TypeError(f"this operation takes real numbers only, and you gave {x.dtype}")
    flat = np.ascontiguousarray(x).reshape(-1)
    if 0 < flat.size <= block:
        return function(flat.astype(dtype, copy=False)).astype(x.dtype, copy=False).reshape(x.shape)
    result = np.empty_like(flat)
    for start in range(0, flat.size, block):
        part = slice(start, start + block)
        result[part] = function(flat[part].astype(dtype, copy=False))
    return result.reshape(x.shape)


@cache
def in_vectors(name: str) -> bool:
    """Return whether NumPy computes its function of that name by vector instructions here, for float32 numbers."""
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # NumPy before 2.2
        return False
    found = opt_func_info(func_name=f"^{name}$").get(name, {}).get("ff", {})
    return not found.get("current", "baseline").startswith("baseline")


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Return the polynomial at ``x`` by Horner's scheme, with one array for all intermediate results; highest power first."""
    result: Array = np.multiply(x, x.dtype.type(coefficients[0]))
    for coefficient in coefficients[1:-1]:
        result += x.dtype.type(coefficient)
        result *= x
    result += x.dtype.type(coefficients[-1])
    return result
