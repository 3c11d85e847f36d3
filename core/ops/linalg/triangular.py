"""Triangular systems, by halves: most of the work is then matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..shape.diagonal import lower as lower_part
from ..shape.diagonal import upper as upper_part
from ..shape.transposing import transpose
from ..table.nodes import ARRAYS, TENSORS, Row, keep, keep_result, record, records
from ..table.operation import operation
from .checks import LinAlgError, square
from .matrix_products import factors

_SMALL = 32


def _solve_rule_a(xp: Any, g: Any, a: Any, out: Any, upper: bool, unit: bool, shape: Any, other: Any) -> Any:
    gb = xp.solve_triangular(xp.adjoint(a), g, not upper, unit)
    product = xp.fit(-xp.matmul(gb, xp.adjoint(out)), shape, g.dtype)
    # What the solver does not read has no gradient.
    return xp.triu(product, int(unit)) if upper else xp.tril(product, -int(unit))


# Giles (2008), 2.2.3, with the part that is not read left out.
_SOLVE = Row(
    "linalg_solve_triangular",
    _solve_rule_a,
    lambda xp, g, a, out, upper, unit, shape, other: xp.fit(
        xp.solve_triangular(xp.adjoint(a), g, not upper, unit), other, g.dtype
    ),
    holomorphic=False,
)


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
    """``X`` with ``A @ X = B`` for triangular ``A``, of which the other triangle is not read.

    Args:
        A: square matrices ``(..., n, n)``.
        B: ``(..., n, k)``, or ``(..., k, n)`` with ``left=False``.
        upper: which triangle.
        left: on which side ``A`` stands.
        unitriangular: take the diagonal for ones.
        out: where the result is written.

    Raises:
        LinAlgError: a diagonal has a zero.
        TypeError: the dtypes differ, or are not of floating point.
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
    """The older form of ``linalg.solve_triangular``: the solution of ``A @ X = b``, and ``A``."""
    matrix, side = (A.mT, not upper) if transpose else (A, upper)
    return triangle_solved(matrix, b, side, unitriangular), A


def triangle_solved(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
    """``solve_triangular`` with the matrix on the left."""
    x, y = factors("linalg.solve_triangular", a, b)
    if y.ndim < 2 or x.shape[-1] != y.shape[-2]:
        raise ValueError(f"linalg.solve_triangular() cannot solve a system of shape {x.shape} for {y.shape}")
    result = Tensor(solve_triangle(x, y, upper, unit))
    if records(a, b):
        record(_SOLVE, result, (a, b), (keep(a), keep_result(result)), upper, unit, x.shape, y.shape)
    return result


def solve_triangle(x: Array, y: Array, upper: bool, unit: bool) -> Array:
    """``triangle_solved`` on arrays."""
    if not unit and (np.diagonal(x, 0, -2, -1) == 0).any():
        raise LinAlgError("linalg.solve_triangular(): a diagonal has a zero, so the matrix is singular")
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    out = np.array(np.broadcast_to(y, (*batch, *y.shape[-2:])))
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
    out[...] = np.linalg.solve(block, out)
