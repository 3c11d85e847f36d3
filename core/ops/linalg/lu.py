"""LU factors and linear systems solved with them: ``linalg.lu``, ``lu_factor``, ``lu_solve``, and PyTorch's older forms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..index.scatter import take_along_dim
from ..shape.diagonal import tril, triu
from ..shape.joining import cat
from ..shape.transposing import adjoint
from ..table.nodes import keep_result, record, records
from ..table.operation import operation
from ..table.rows import Row
from .checks import LinAlgError, matrices, square
from .decompositions import identity
from .matrix_products import matmul
from .triangular import factored, permutation_of, triangle_solved


class LU(NamedTuple):
    """Result of ``linalg.lu``."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """Result of ``linalg.lu_factor``."""

    LU: Tensor
    pivots: Tensor


class LUFactorInfo(NamedTuple):
    """Result of ``linalg.lu_factor_ex``."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def _lu_rule(xp: Any, g: Any, packed: Any) -> Any:
    # Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2012), of square matrices.
    ones = identity(packed)
    lower, upper = xp.tril(packed, -1) + ones, xp.triu(packed, 0)
    inside = xp.tril(xp.matmul(xp.adjoint(lower), xp.tril(g, -1)), -1)
    inside = inside + xp.triu(xp.matmul(xp.triu(g, 0), xp.adjoint(upper)), 0)
    left = xp.solve_triangular(xp.adjoint(lower), inside, True, True)
    return xp.adjoint(xp.solve_triangular(upper, xp.adjoint(left), True, False))


_LU = Row("linalg_lu_factor", _lu_rule, holomorphic=False)


def _factor(name: str, input: Tensor, pivot: bool) -> LUFactorInfo:
    found = factored(matrices(name, input), pivot)
    packed = Tensor(found.packed)
    if records(input):
        packed = _recorded(_rows(input, found.permutation), packed)
    return LUFactorInfo(packed, Tensor(found.pivots), Tensor(found.info))


def _rows(input: Tensor, permutation: Array) -> Tensor:
    return take_along_dim(input, Tensor(np.broadcast_to(permutation[..., None], input.shape).copy()), -2)


def _recorded(a: Tensor, packed: Tensor) -> Tensor:
    """Return the factors of ``a``, whose rows are permuted, with a gradient.

    The square at the top left has a rule; the rest follows from it by a triangular system.
    """
    rows, columns = a.shape[-2:]
    k = min(rows, columns)
    top = Tensor(np.array(packed._array[..., :k, :k]))
    record(_LU, top, (a[..., :k, :k],), (keep_result(top),))
    if rows > columns:
        below = adjoint(triangle_solved(adjoint(top), adjoint(a[..., k:, :]), False, False))
        return cat([top, below], -2)
    if rows < columns:
        return cat([top, triangle_solved(top, a[..., k:], False, True)], -1)
    return top


@operation(function="linalg.lu_factor_ex")
def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: tuple[Tensor, ...] | None = None
) -> LUFactorInfo:
    """Return ``lu_factor`` and ``info``, without an error for a singular matrix.

    Args:
        A: matrices ``(..., m, n)``.
        pivot: whether to swap rows, so that each pivot is the largest of its column.
        check_errors: whether to raise the error.
        out: where the results are written.

    Returns:
        ``LU`` and ``pivots`` of ``lu_factor``, and ``info`` ``(...)``, int32: i where ``U[i - 1, i - 1]`` is the first zero
        of the diagonal, else 0.

    Raises:
        LinAlgError: ``check_errors``, and a diagonal of U has a zero.
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions.
    """
    result = _factor("linalg.lu_factor_ex", A, pivot)
    if check_errors:
        _check("linalg.lu_factor_ex", result.info._array)
    return result


def _check(name: str, info: Array) -> None:
    if info.any():
        index = np.unravel_index(int((info != 0).argmax()), info.shape)
        where = f"matrix {tuple(map(int, index))} of the batch" if index else "the matrix"
        raise LinAlgError(
            f"{name}(): {where} is singular, U[{info[index] - 1}, {info[index] - 1}] is 0; "
            "lu_factor_ex() and lu() factor it without an error"
        )


@operation(function="linalg.lu_factor")
def lu_factor(A: Tensor, *, pivot: bool = True, out: tuple[Tensor, ...] | None = None) -> LUFactor:
    """Return ``A = P @ L @ U`` in packed form, for ``lu_solve``.

    Args:
        A: matrices ``(..., m, n)``; ``k`` is the smaller of the two.
        pivot: whether to swap rows, so that each pivot is the largest of its column; without, the result may be imprecise.
        out: where the results are written.

    Returns:
        ``LU`` ``(..., m, n)``, U with L below its diagonal (the diagonal of L is ones and not stored), and ``pivots``
        ``(..., k)``, int32, counted from 1: row i was swapped with row ``pivots[i]``.

    Raises:
        LinAlgError: a diagonal of U has a zero.
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions.
    """
    result = _factor("linalg.lu_factor", A, pivot)
    _check("linalg.lu_factor", result.info._array)
    return LUFactor(result.LU, result.pivots)


@operation(function="linalg.lu")
def linalg_lu(A: Tensor, *, pivot: bool = True, out: tuple[Tensor, ...] | None = None) -> LU:
    """Return ``A = P @ L @ U``: a permutation, a lower triangle with ones on its diagonal, and an upper triangle.

    Args:
        A: matrices ``(..., m, n)``; ``k`` is the smaller of the two.
        pivot: whether to swap rows; without, ``P`` is empty.
        out: where the results are written.

    Returns:
        ``P`` ``(..., m, m)``, ``L`` ``(..., m, k)`` and ``U`` ``(..., k, n)``.

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions.
    """
    packed, pivots, _ = _factor("linalg.lu", A, pivot)
    return _unpacked(packed, pivots, True, pivot)


def _unpacked(packed: Tensor, pivots: Tensor, data: bool, permutation: bool) -> LU:
    rows, columns = packed.shape[-2:]
    k = min(rows, columns)
    p = lower = upper = Tensor(np.empty(0, packed.dtype))
    if permutation:
        order = permutation_of(pivots._array, rows)
        p = Tensor(np.ascontiguousarray((order[..., None, :] == np.arange(rows)[:, None]).astype(packed.dtype)))
    if data:
        lower = tril(packed[..., :k], -1) + Tensor(np.eye(rows, k, dtype=packed.dtype))
        upper = triu(packed[..., :k, :])
    return LU(p, lower, upper)


@operation(function=True)
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: tuple[Tensor, ...] | None = None,
) -> LU:
    """Return ``P``, ``L`` and ``U`` as ``linalg.lu`` gives them, from the results of ``linalg.lu_factor``.

    Args:
        LU_data: factors ``(..., m, n)``.
        LU_pivots: int32, ``(..., min(m, n))``.
        unpack_data: whether to return ``L`` and ``U``; else they are empty.
        unpack_pivots: whether to return ``P``; else it is empty.
        out: where the results are written.

    Raises:
        TypeError: pivots of another dtype.
        ValueError: the shapes do not fit.
    """
    x = matrices("lu_unpack", LU_data)
    if unpack_pivots:
        _check_pivots("lu_unpack", x, LU_pivots)
    return _unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots)


def _check_pivots(name: str, x: Array, pivots: Tensor) -> None:
    if pivots.dtype != np.int32:
        raise TypeError(f"{name}() takes pivots of int32, as lu_factor() returns them, and you gave {pivots.dtype}")
    expected = (*x.shape[:-2], min(x.shape[-2:]))
    if pivots.shape != expected:
        raise ValueError(f"{name}() needs pivots of shape {expected}, and you gave {pivots.shape}")
    if pivots.numel() and not (pivots._array.min() >= 1 and pivots._array.max() <= x.shape[-2]):
        raise ValueError(f"{name}() needs pivots from 1 to {x.shape[-2]}, as lu_factor() returns them")


@operation(function="linalg.lu_solve")
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return ``X`` with ``A @ X = B``, from the results of ``linalg.lu_factor(A)``.

    Args:
        LU: factors ``(..., n, n)``.
        pivots: int32, ``(..., n)``.
        B: right sides ``(..., n, k)``, or ``(..., k, n)`` with ``left=False``.
        left: whether to solve ``A @ X = B``; else ``X @ A = B``.
        adjoint: whether to use ``A.mH`` instead of ``A``.
        out: where the result is written.

    Raises:
        LinAlgError: ``A`` is singular.
        TypeError: the dtypes differ, are not floating-point or complex, or pivots are not int32.
        ValueError: the shapes do not fit.
    """
    x = square("linalg.lu_solve", LU)
    _check_pivots("linalg.lu_solve", x, pivots)
    matrices("linalg.lu_solve", B)
    if B.dtype != LU.dtype:
        raise TypeError(f"linalg.lu_solve() takes matrices of one dtype, and you gave {LU.dtype} and {B.dtype}")
    if B.shape[-2 if left else -1] != x.shape[-1]:
        raise ValueError(f"linalg.lu_solve() cannot solve a system of shape {x.shape} for {B.shape}")
    p = _unpacked(LU, pivots, False, True).P
    # X @ A = B is the same as A.mH @ X.mH = B.mH.
    return _solved(LU, p, B, adjoint) if left else _solved(LU, p, B.mH, not adjoint).mH


def _solved(packed: Tensor, p: Tensor, b: Tensor, conjugated: bool) -> Tensor:
    if conjugated:
        factors = adjoint(packed)
        return matmul(p, triangle_solved(factors, triangle_solved(factors, b, False, False), True, True))
    return triangle_solved(packed, triangle_solved(packed, matmul(p.mT, b), False, True), True, False)


@operation(method=True)
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the older form of ``linalg.lu_solve``: the right sides come first. Errors: those of ``linalg.lu_solve``.

    Args:
        b: right sides ``(..., n, k)``.
        LU_data: factors ``(..., n, n)`` of ``lu``.
        LU_pivots: pivots of ``lu``, int32, ``(..., n)``.
        out: where the result is written.
    """
    return linalg_lu_solve(LU_data, LU_pivots, b)


@operation(method=True)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> LUFactor | LUFactorInfo:
    """Return the older form of ``linalg.lu_factor``, without an error for a singular matrix.

    Args:
        A: matrices ``(..., m, n)``.
        pivot: whether to swap rows, so that each pivot is the largest of its column.
        get_infos: whether to return ``info`` as well, as ``linalg.lu_factor_ex`` does.
    """
    result = _factor("lu", A, pivot)
    return result if get_infos else LUFactor(result.LU, result.pivots)
