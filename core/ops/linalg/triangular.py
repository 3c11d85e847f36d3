"""Triangular systems, and LU factors with partial pivoting of arrays.

Both divide the columns in halves, so that most of the work is matrix products: S. Toledo, "Locality of reference in LU
decomposition with partial pivoting" (SIAM J. Matrix Anal. Appl. 18, 1997). Each step runs over all matrices of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...autograd.node import Edges
from ...tensors import Tensor
from ...types import Array
from ..shape.diagonal import lower as lower_part
from ..shape.diagonal import upper as upper_part
from ..shape.transposing import transpose
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.rows import ARRAYS, TENSORS, Row
from .checks import LinAlgError, square
from .matrix_products import factors

_SMALL = 32


def _solve_gradients(xp: Any, g: Any, arguments: Sequence[Any], edges: Edges) -> list[Any]:
    # Giles (2008), 2.2.3, with the triangle that is not read left out.
    a, out, upper, unit, shape, other = arguments
    right = xp.solve_triangular(xp.adjoint(a), g, not upper, unit)  # for both
    if edges[0] is None:
        return [None, xp.fit(right, other, g.dtype)]
    product = xp.fit(-xp.matmul(right, xp.adjoint(out)), shape, g.dtype)
    return [
        xp.triu(product, int(unit)) if upper else xp.tril(product, -int(unit)),
        None if edges[1] is None else xp.fit(right, other, g.dtype),
    ]


_SOLVE = Row("linalg_solve_triangular", pull=_solve_gradients, holomorphic=False)


@operation(function="linalg.solve_triangular")
def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return ``X`` with ``A @ X = B``, of the shape of ``B``, for triangular ``A``.

    Args:
        A: square matrices ``(..., n, n)``; the other triangle is not read.
        B: right sides ``(..., n, k)``, or ``(..., k, n)`` with ``left=False``.
        upper: whether ``A`` is upper triangular; else lower.
        left: whether to solve ``A @ X = B``; else ``X @ A = B``.
        unitriangular: whether the diagonal of ``A`` counts as ones and is not read.
        out: where the result is written.

    Raises:
        LinAlgError: a diagonal has a zero.
        TypeError: the dtypes differ, or are not floating-point or complex.
        ValueError: the shapes do not fit.
    """
    square("linalg.solve_triangular", A)
    if not left:
        result = transpose(
            triangle_solved(transpose(A, -2, -1), transpose(B, -2, -1), not upper, unitriangular), -2, -1
        )
    else:
        result = triangle_solved(A, B, upper, unitriangular)
    return result


@operation(method=True)
def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the older form of ``linalg.solve_triangular``: the solution of ``A @ X = b``, and ``A``.

    Args:
        b: right sides ``(..., n, k)``.
        A: triangular matrices ``(..., n, n)``.
        upper: whether triangles are upper ones.
        transpose: whether it solves with ``A.mT``.
        unitriangular: whether the diagonal counts as ones.
    """
    matrix, side = (A.mT, not upper) if transpose else (A, upper)
    return triangle_solved(matrix, b, side, unitriangular), A


def triangle_solved(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
    """Return ``X`` with ``a @ X = b`` for triangular ``a``.

    Args:
        a: matrices ``(..., n, n)``.
        b: right sides ``(..., n, k)``.
        upper: whether ``a`` is upper triangular; else lower.
        unit: whether the diagonal of ``a`` counts as ones and is not read.

    Raises:
        LinAlgError: a diagonal has a zero.
        ValueError: the shapes do not fit.
    """
    x, y = factors("linalg.solve_triangular", a, b)
    if y.ndim < 2 or x.shape[-1] != y.shape[-2]:
        raise ValueError(f"linalg.solve_triangular() cannot solve a system of shape {x.shape} for {y.shape}")
    result = Tensor(solve_triangle(x, y, upper, unit))
    if records(a, b):
        record(_SOLVE, result, (a, b), (keep(a), keep_result(result)), upper, unit, x.shape, y.shape)
    return result


def solve_triangle(x: Array, y: Array, upper: bool, unit: bool) -> Array:
    """Return ``triangle_solved`` on arrays.

    Args:
        x: matrices ``(..., n, n)``.
        y: right sides ``(..., n, k)``.
        upper: whether ``x`` is upper triangular; else lower.
        unit: whether the diagonal of ``x`` counts as ones and is not read.

    Raises:
        LinAlgError: a diagonal has a zero.
    """
    if not unit and (np.diagonal(x, 0, -2, -1) == 0).any():
        raise LinAlgError("linalg.solve_triangular(): a diagonal has a zero, so the matrix is singular")
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    out = np.array(np.broadcast_to(y, (*batch, *y.shape[-2:])), order="C")  # BLAS writes to rows faster
    _substitute(x, out, upper, unit)
    return out


ARRAYS.solve_triangular, TENSORS.solve_triangular = solve_triangle, triangle_solved


def _substitute(x: Array, out: Array, upper: bool, unit: bool) -> None:
    n = x.shape[-1]
    if n > _SMALL:
        half = n // 2
        ranges = [slice(0, half), slice(half, n)]
        first, second = ranges[::-1] if upper else ranges
        _substitute(x[..., first, first], out[..., first, :], upper, unit)
        out[..., second, :] -= np.matmul(x[..., second, first], out[..., first, :])
        _substitute(x[..., second, second], out[..., second, :], upper, unit)
        return
    block = np.array(upper_part(x, int(unit)) if upper else lower_part(x, -int(unit)))
    if unit:
        block += np.eye(n, dtype=x.dtype)
    # One right side after the other, LAPACK takes much longer than for the inverse of so small a matrix.
    many = out.shape[-1] >= 2 * n
    out[...] = np.matmul(np.linalg.inv(block), out) if many else np.linalg.solve(block, out)


_NARROW = 8  # panels of at most this many columns are factored column by column


class Factors(NamedTuple):
    """LU factors: L, without its diagonal of ones, and U in one array; the swaps of rows; the first zero of U's diagonal."""

    packed: Array  # (..., m, n)
    pivots: Array  # (..., k), int32: row i was swapped with row pivots[i] - 1, i = 0, 1, ...
    permutation: Array  # (..., m): row i of L @ U is row permutation[i] of the matrix
    info: Array  # (...), int32: i if U[i - 1, i - 1] is 0, else 0


def factored(x: Array, pivot: bool) -> Factors:
    """Return the LU factors of matrices ``(..., m, n)``, with row swaps if ``pivot``.

    A zero on U's diagonal raises no error; L has zeros below it.
    """
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
    """Return the order ``(..., rows)`` of the rows after the swaps ``pivots`` ``(..., k)``, counted from 1."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.broadcast_to(np.arange(rows), (len(flat), rows)).copy()
    each = np.arange(len(flat))
    for i in range(flat.shape[1]):
        other = flat[:, i] - 1
        order[each, i], order[each, other] = order[each, other], order[each, i].copy()
    return order.reshape(*pivots.shape[:-1], rows)


def _factor(x: Array, pivots: Array, pivot: bool, start: int, stop: int) -> None:
    """Factor the columns from ``start`` to ``stop`` below row ``start``; swap the rows of all columns."""
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
    """Return the absolute values, for complex numbers LAPACK's measure ``|real| + |imag|``, which chooses the pivots."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)
