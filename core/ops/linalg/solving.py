"""Linear systems and inverses: ``solve``, ``inv``, ``solve_triangular``, ``cholesky_solve``, ``lstsq``, ``pinv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...autograd.node import Edges
from ...tensors import Tensor
from ...types import Array
from ..elementwise.complex_numbers import real
from ..shape.reshaping import unsqueeze
from ..shape.transposing import adjoint, transpose
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.rows import ARRAYS, TENSORS, Row
from .checks import attempt, matrices, replaced, square, unfit
from .matrix_products import factors, matmul
from .triangular import solve_triangular

SINGULAR = "is singular, so it has no inverse"


def _solve_gradients(xp: Any, g: Any, arguments: Sequence[Any], edges: Edges) -> list[Any]:
    a, out, shape, other = arguments
    right = xp.solve(xp.adjoint(a), g)  # for both
    return [
        None if edges[0] is None else xp.fit(-xp.matmul(right, xp.adjoint(out)), shape, g.dtype),
        None if edges[1] is None else xp.fit(right, other, g.dtype),
    ]


def _inv_rule(xp: Any, g: Any, out: Any) -> Any:
    h = xp.adjoint(out)
    return -xp.matmul(xp.matmul(h, g), h)


# Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008), 2.2.3.
_SOLVE = Row("linalg_solve", pull=_solve_gradients, holomorphic=False)
_INV = Row("linalg_inv", _inv_rule, holomorphic=False)


@operation(function="linalg.solve")
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Return ``X`` with ``A @ X = B``, of the shape of ``B``, broadcast.

    Args:
        A: square matrices ``(..., n, n)``.
        B: right sides ``(..., n, k)``, or vectors: ``(n,)``, or of the shape of ``A`` without its last dimension.
        left: whether to solve ``A @ X = B``; else ``X @ A = B``.
        out: where the result is written.

    Raises:
        LinAlgError: a matrix is singular.
        TypeError: the dtypes differ, or are not floating-point or complex.
        ValueError: the shapes do not fit.
    """
    square("linalg.solve", A)
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    right = unsqueeze(B, -1) if vector else B
    if not left:
        result = transpose(solved(transpose(A, -2, -1), transpose(right, -2, -1) if not vector else right), -2, -1)
        result = transpose(result, -2, -1) if vector else result
    else:
        result = solved(A, right)
    return result.squeeze(-1) if vector else result


def solved(a: Tensor, b: Tensor) -> Tensor:
    """Return ``X`` with ``a @ X = b`` for matrices ``a`` ``(..., n, n)`` and ``b`` ``(..., n, k)``."""
    x, y = factors("linalg.solve", a, b)
    if y.ndim < 2 or x.shape[-1] != y.shape[-2]:
        raise ValueError(f"linalg.solve() cannot solve a system of shape {x.shape} for {y.shape}")
    result = Tensor(solve_arrays(x, y))
    if records(a, b):
        record(_SOLVE, result, (a, b), (keep(a), keep_result(result)), x.shape, y.shape)
    return result


def solve_arrays(x: Array, y: Array) -> Array:
    """Return ``solved`` on arrays."""
    return attempt("linalg.solve", SINGULAR, np.linalg.solve, x, y)


@operation(function="linalg.inv")
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverses of square matrices ``(..., n, n)``.

    Raises:
        LinAlgError: a matrix is singular.
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    result = Tensor(inverse_arrays(square("linalg.inv", A)))
    if records(A):
        record(_INV, result, (A,), (keep_result(result),))
    return result


def inverse_arrays(x: Array) -> Array:
    """Return ``inv`` on arrays."""
    return attempt("linalg.inv", SINGULAR, np.linalg.inv, x)


ARRAYS.solve, TENSORS.solve = solve_arrays, solved
ARRAYS.inv, TENSORS.inv = inverse_arrays, inv


class InverseInfo(NamedTuple):
    """Result of ``linalg.inv_ex``."""

    inverse: Tensor
    info: Tensor


class SolveInfo(NamedTuple):
    """Result of ``linalg.solve_ex``."""

    result: Tensor
    info: Tensor


@operation(function="linalg.inv_ex")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InverseInfo:
    """Return the inverses of square matrices ``(..., n, n)`` and ``info``, without an error for a singular matrix.

    Returns:
        ``inverse`` ``(..., n, n)``, nan where a matrix is singular, and ``info`` ``(...)``, int32, 1 there, else 0.

    Raises:
        LinAlgError: ``check_errors``, and a matrix is singular.
    """
    bad = unfit(square("linalg.inv_ex", A), np.linalg.inv, check_errors)
    result = inv(replaced(A, bad))
    return InverseInfo(result.masked_fill(Tensor(bad[..., None, None]), np.nan), Tensor(bad.astype(np.int32)))


@operation(function="linalg.solve_ex")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveInfo:
    """Return ``solve`` and ``info``, without an error for a singular matrix.

    Args:
        A: square matrices ``(..., n, n)``.
        B: right sides ``(..., n, k)``, or vectors: ``(n,)``, or of the shape of ``A`` without its last dimension.
        left: whether to solve ``A @ X = B``; else ``X @ A = B``.
        check_errors: whether to raise the error.

    Returns:
        ``result``, of the shape of ``B``, nan where a matrix is singular, and ``info`` ``(...)``, int32, 1 there, else 0.

    Raises:
        LinAlgError: ``check_errors``, and a matrix is singular.
    """
    bad = unfit(square("linalg.solve_ex", A), np.linalg.inv, check_errors)
    result = solve(replaced(A, bad), B, left=left)
    mask = bad.reshape(bad.shape + (1,) * (result.ndim - bad.ndim))
    return SolveInfo(result.masked_fill(Tensor(mask), np.nan), Tensor(bad.astype(np.int32)))


@operation(method=True)
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ``linalg.inv``."""
    return inv(input)


@operation(method=True)
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return ``X`` ``(..., n, k)`` with ``A @ X = B``, from the Cholesky factor ``L`` of ``A``.

    Args:
        B: right sides ``(..., n, k)``.
        L: triangular matrices ``(..., n, n)``.
        upper: whether ``L`` is the upper triangular factor.

    Raises:
        TypeError: the dtypes differ, or are not floating-point or complex.
        ValueError: the shapes do not fit.
    """
    first, second = (adjoint(L), L) if upper else (L, adjoint(L))
    return solve_triangular(second, solve_triangular(first, B, upper=False), upper=True)


@operation(method=True)
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of the matrices whose Cholesky factor is ``L`` ``(..., n, n)``. Errors: ``cholesky_solve``'s."""
    x = square("cholesky_inverse", L)
    return cholesky_solve(Tensor(np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)), L, upper)


def _pinv_rule(xp: Any, g: Any, a: Any, p: Any) -> Any:
    # Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973).
    ph, gh = xp.adjoint(p), xp.adjoint(g)
    first = -xp.matmul(xp.matmul(ph, g), ph)
    pph, php = xp.matmul(p, ph), xp.matmul(ph, p)
    second = xp.matmul(gh, pph) - xp.matmul(a, xp.matmul(xp.matmul(p, gh), pph))
    third = xp.matmul(php, gh) - xp.matmul(xp.matmul(php, xp.matmul(gh, p)), a)
    return first + second + third


_PINV = Row("linalg_pinv", _pinv_rule, holomorphic=False)


@operation(function="linalg.pinv")
def pinv(
    A: Tensor,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the pseudoinverses ``(..., n, m)`` of matrices; differentiable where the rank does not change.

    Singular values up to ``max(atol, rtol * largest)`` count as 0.

    Args:
        A: matrices ``(..., m, n)``.
        atol: absolute tolerance; 0 if ``None``.
        rtol: relative tolerance; if ``None``, ``max(m, n)`` times the machine epsilon, or 0 if ``atol`` is given.
        hermitian: whether the matrices are Hermitian.
        out: where the result is written.

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions.
    """
    x = matrices("linalg.pinv", A)
    result = Tensor(_pseudoinverses(x, atol, rtol, hermitian))
    if records(A):
        record(_PINV, result, (A,), (keep(A), keep_result(result)))
    return result


def _pseudoinverses(x: Array, atol: float | None, rtol: float | None, hermitian: bool) -> Array:
    if not x.size:
        return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    u, s, vh = np.linalg.svd(x, full_matrices=False, hermitian=hermitian)
    keep_from = tolerance(x, s, atol, rtol)[..., None]
    inverted = np.where(s > keep_from, 1 / np.where(s == 0, 1, s), 0)
    return np.asarray(np.matmul(np.conjugate(vh.mT) * inverted[..., None, :], np.conjugate(u.mT)))


def tolerance(x: Array, s: Array, atol: Any, rtol: Any) -> Array:
    """Return the limits ``(...)`` up to which singular values count as 0: ``max(atol, rtol * largest)``.

    Args:
        x: matrices ``(..., m, n)``.
        s: their singular values, the largest first.
        atol: absolute tolerance; 0 if ``None``.
        rtol: relative tolerance; if ``None``, ``max(m, n)`` times the machine epsilon, or 0 if ``atol`` is given.
    """
    absolute = np.asarray(0.0 if atol is None else getattr(atol, "_array", atol))
    if rtol is None:
        rtol = 0.0 if (absolute > 0).any() else max(x.shape[-2:]) * np.finfo(s.dtype).eps
    largest = s[..., 0] if s.shape[-1] else np.zeros(s.shape[:-1], s.dtype)
    return np.asarray(np.maximum(np.asarray(getattr(rtol, "_array", rtol)) * largest, absolute))


@operation(method=True)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return ``linalg.pinv`` with the relative tolerance ``rcond``. Errors: those of ``linalg.pinv``."""
    return pinv(input, rtol=rcond)


class LeastSquares(NamedTuple):
    """Result of ``linalg.lstsq``."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


_DRIVERS = "gels", "gelsy", "gelsd", "gelss"


@operation(function="linalg.lstsq")
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """Return the ``X`` of least norm that minimizes the norm of ``A @ X - B``, computed by the pseudoinverse.

    Args:
        A: matrices ``(..., m, n)``.
        B: right sides ``(..., m, k)``, or vectors: of the shape of ``A`` without its last dimension.
        rcond: relative tolerance: singular values up to ``rcond`` times the largest count as 0.
        driver: "gels", "gelsy" (the default), "gelsd" or "gelss"; it only decides which results are empty.

    Returns:
        ``solution`` ``(..., n, k)``; ``residuals`` ``(..., k)``, the sums of squares, empty for "gelsy", for ``m <= n`` and
        if a matrix has not full rank; ``rank`` ``(...)``, empty for "gels"; ``singular_values`` ``(..., min(m, n))``, only
        for "gelsd" and "gelss".

    Raises:
        TypeError: the dtypes differ, or are not floating-point or complex.
        ValueError: the shapes do not fit.
    """
    x, y = matrices("linalg.lstsq", A), B._array
    vector = y.ndim == x.ndim - 1 and y.shape == x.shape[:-1]
    right = unsqueeze(B, -1) if vector else B
    factors("linalg.lstsq", A, right)
    if right.ndim < 2 or right.shape[-2] != x.shape[-2]:
        raise ValueError(f"linalg.lstsq() needs as many rows in both, and you gave shapes {x.shape} and {y.shape}")
    solution = matmul(pinv(A, rtol=rcond), right)
    s = np.linalg.svd(x, compute_uv=False)
    rank = np.asarray((s > tolerance(x, s, None, rcond)[..., None]).sum(-1))
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise ValueError(f"linalg.lstsq() takes driver {', '.join(_DRIVERS)}, and you gave {driver!r}")
    if driver != "gelsy" and x.shape[-2] > x.shape[-1] and (rank == x.shape[-1]).all():
        difference = matmul(A, solution) - right
        residuals = real(difference * difference.conj()).sum(-2)
    else:
        residuals = Tensor(np.zeros(0, s.dtype))
    empty = np.zeros(0, s.dtype)
    ranks = np.zeros(0, rank.dtype) if driver == "gels" else rank
    values = s if driver in ("gelsd", "gelss") else empty
    return LeastSquares(solution.squeeze(-1) if vector else solution, residuals, Tensor(ranks), Tensor(values))
