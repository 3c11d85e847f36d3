"""LU factors of matrices on arrays, with partial pivoting: recursive, so that most of the work is matrix products.

S. Toledo, "Locality of reference in LU decomposition with partial pivoting" (SIAM J. Matrix Anal. Appl. 18, 1997). Batches are
factored together: each step runs over all matrices at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...types import Array
from .triangular import solve_triangle

_NARROW = 8  # panels of so many columns are factored column by column


class Factors(NamedTuple):
    """L, without its diagonal of ones, and U in one array; where the rows came from; the first zero of U's diagonal."""

    packed: Array  # (..., m, n)
    pivots: Array  # (..., k), int32: row i was swapped with row pivots[i] - 1, i = 0, 1, ...
    permutation: Array  # (..., m): row i of L @ U is row permutation[i] of the matrix
    info: Array  # (...), int32: i if U[i - 1, i - 1] is 0, else 0


def factored(x: Array, pivot: bool) -> Factors:
    """Factor matrices ``(..., m, n)``; those with a zero on U's diagonal too, whose L has zeros below it."""
    m, n = x.shape[-2:]
    k = min(m, n)
    packed = np.array(x).reshape(math.prod(x.shape[:-2]), m, n)
    pivots = np.broadcast_to(np.arange(k), (len(packed), k)).copy()
    if k:
        _factor(packed, pivots, pivot, 0, n)
    zeros = np.diagonal(packed, 0, -2, -1) == 0
    info = np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0) if k else np.zeros(len(packed), int)
    batch = x.shape[:-2]
    return Factors(
        packed.reshape(x.shape),
        (pivots + 1).astype(np.int32).reshape(*batch, k),
        permutation_of(pivots + 1, m).reshape(*batch, m),
        info.astype(np.int32).reshape(batch),
    )


def permutation_of(pivots: Array, rows: int) -> Array:
    """The order of ``rows`` rows after the swaps that ``pivots`` ``(..., k)``, counted from 1, tell."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.broadcast_to(np.arange(rows), (len(flat), rows)).copy()
    each = np.arange(len(flat))
    for i in range(flat.shape[1]):
        other = flat[:, i] - 1
        order[each, i], order[each, other] = order[each, other], order[each, i].copy()
    return order.reshape(*pivots.shape[:-1], rows)


def _factor(x: Array, pivots: Array, pivot: bool, start: int, stop: int) -> None:
    """Factor the columns from ``start`` to ``stop`` below row ``start``; of all columns, swap the rows."""
    rows = x.shape[-2]
    if stop - start <= _NARROW or start >= rows:
        for column in range(start, min(stop, rows)):
            _eliminate(x, pivots, pivot, column, stop)
        return
    middle = (start + stop) // 2
    _factor(x, pivots, pivot, start, middle)
    if middle > rows:  # nothing is left below
        x[:, start:rows, middle:stop] = _solved(x, start, rows, middle, stop)
        return
    x[:, start:middle, middle:stop] = _solved(x, start, middle, middle, stop)
    x[:, middle:, middle:stop] -= np.matmul(x[:, middle:, start:middle], x[:, start:middle, middle:stop])
    _factor(x, pivots, pivot, middle, stop)


def _solved(x: Array, first: int, last: int, start: int, stop: int) -> Array:
    return solve_triangle(x[:, first:last, first:last], x[:, first:last, start:stop], False, True)


def _eliminate(x: Array, pivots: Array, pivot: bool, column: int, stop: int) -> None:
    if pivot:
        below = x[:, column:, column]
        other = column + size(below).argmax(-1)
        pivots[:, column] = other
        each = np.arange(len(x))
        x[each, column], x[each, other] = x[each, other], x[each, column].copy()
    top = x[:, column, column]
    # A column of zeros is eliminated already.
    x[:, column + 1 :, column] /= np.where(top == 0, 1, top)[:, None]
    x[:, column + 1 :, column + 1 : stop] -= x[:, column + 1 :, column, None] * x[:, column, None, column + 1 : stop]


def size(x: Array) -> Array:
    """LAPACK's measure of complex numbers chooses the pivots."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)
