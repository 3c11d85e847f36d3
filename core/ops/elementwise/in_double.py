"""Functions of two float32 arrays, computed in float64: they are as exact as NumPy's, and take a third of the time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array_like import ArrayLike
from ...types import Array
from ..table.blockwise import blockwise

_MANY = 1024  # elements, from which on several quick functions cost less than a slow one
_EXACT = (
    2.0**28
)  # a quotient of float32 numbers below this is truncated exactly in float64, and times the divisor exact


def fmod(x: Any, y: Any) -> Any:
    """Return what ``np.fmod`` returns, which recordings call: it has the same bits."""
    recorded = isinstance(x, ArrayLike) or isinstance(y, ArrayLike)
    return _fmod(x, y) if _are_many_singles(x, y) and not recorded else np.fmod(x, y)


def hypot(x: Any, y: Any) -> Any:
    """Return what ``np.hypot`` returns, but for the last bit on systems whose own ``hypotf`` rounds otherwise."""
    return _hypot(x, y) if _are_many_singles(x, y) else np.hypot(x, y)


def _are_many_singles(x: Any, y: Any) -> bool:
    arrays = isinstance(x, (np.ndarray, ArrayLike)) and isinstance(y, (np.ndarray, ArrayLike))
    return arrays and x.dtype == y.dtype == np.float32 and min(x.size, y.size) >= _MANY


@blockwise
def _fmod(x: Array, y: Array) -> Any:
    with np.errstate(all="ignore"):
        rest, divisor = x.astype(np.float64), y.astype(np.float64)
        turns = rest / divisor
        np.trunc(turns, out=turns)
        usual = turns.max() < _EXACT and turns.min() > -_EXACT  # not so where one is nan
        turns *= divisor
        result = np.subtract(rest, turns, out=turns).astype(np.float32)
    if not usual or np.isnan(result).any():  # of an infinite divisor
        return np.fmod(x, y)
    bits = result.view(np.int32)
    bits |= x.view(np.int32) & np.int32(-(2**31))  # a remainder of 0 has the sign of x too
    return result


@blockwise
def _hypot(x: Array, y: Array) -> Any:
    with np.errstate(all="ignore"):
        squares, others = x.astype(np.float64), y.astype(np.float64)
        squares *= squares  # exact, and far from overflow
        others *= others
        squares = squares + others
        result = np.sqrt(squares, out=squares).astype(np.float32)
    return result if np.isfinite(result).all() else np.hypot(x, y)  # it warns of overflow, and inf beside nan is inf
