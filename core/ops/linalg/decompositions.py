"""Cholesky and QR factors, and products of Householder reflections. For others see ``eigenvalues``, ``lu``, ``ldl``.

Reflections ``I - tau[i] v[i] v[i].mH``, where ``v[i]`` is column i of a lower triangle with ones on its diagonal, have
the product ``I - V @ T @ V.mH`` with ``T = inv(I + diag(tau) @ triu(V.mH @ V, 1)) @ diag(tau)``: C. Puglisi, "Modification of
the Householder method based on the compact WY representation" (1992), without a division by tau. So everything is made of
matrix products and one triangular system, and their gradient rules give its gradient.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from ....base.errors import AutogradError
from ...tensors import Tensor
from ...types import Array, DType
from ..shape.diagonal import diag_embed, tril, triu
from ..shape.joining import cat
from ..table.nodes import keep_result, record, records
from ..table.operation import operation
from ..table.outputs import record_outputs
from ..table.rows import Row
from .checks import attempt, matrices, replaced, square, unfit
from .matrix_products import matmul
from .triangular import triangle_solved


class QR(NamedTuple):
    """Result of ``linalg.qr``."""

    Q: Tensor
    R: Tensor


def identity(x: Any) -> Any:
    """Return the identity matrix ``(n, n)``, in the dtype of ``x`` ``(..., n, n)``."""
    return np.eye(x.shape[-1], dtype=x.dtype)


def _cholesky_rule(xp: Any, g: Any, factor: Any) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), equation 9.
    # The diagonal of the product is not made real: a complex one stays as it is, as in PyTorch.
    lower = xp.tril(xp.matmul(xp.adjoint(factor), g), 0)
    symmetric = (lower + xp.adjoint(xp.tril(lower, -1))) * 0.5
    half = xp.solve_triangular(xp.adjoint(factor), symmetric, True, False)
    return xp.adjoint(xp.solve_triangular(xp.adjoint(factor), xp.adjoint(half), True, False))


def _qr_rule(xp: Any, grads: Any, q: Any, r: Any) -> Any:
    # Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2012), for as many rows as columns
    # or more.
    gq, gr = grads
    inside = 0
    if gr is not None:
        inside = xp.matmul(gr, xp.adjoint(r))
    if gq is not None:
        inside = inside - xp.matmul(xp.adjoint(q), gq)
    upper = xp.triu(inside, 0)
    symmetric = (upper + xp.adjoint(upper)) * _half_diagonal(r.shape[-1], r.dtype)
    left = xp.matmul(q, symmetric)
    left = left if gq is None else left + gq
    return xp.adjoint(xp.solve_triangular(r, xp.adjoint(left), True, False))


@lru_cache(maxsize=16)
def _half_diagonal(length: int, dtype: DType) -> Array:
    factors = np.ones((length, length), dtype)
    np.fill_diagonal(factors, 0.5)
    factors.flags.writeable = False
    return factors


_CHOLESKY = Row("linalg_cholesky", _cholesky_rule, holomorphic=False)

_INDEFINITE = "is not positive definite, so it has no Cholesky factor"


@operation(method=True, synonyms=("linalg.cholesky",))
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return the lower triangular ``L`` with ``L @ L.mH = input``, of the shape of ``input``.

    Args:
        input: Hermitian matrices ``(..., n, n)``; only the lower triangle is read.
        upper: whether to return ``L.mH``, which is upper triangular.

    Raises:
        LinAlgError: a matrix is not positive definite.
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    x = square("linalg.cholesky", input)
    result = Tensor(attempt("linalg.cholesky", _INDEFINITE, np.linalg.cholesky, x))
    if records(input):
        record(_CHOLESKY, result, (input,), (keep_result(result),))
    return result.mH if upper else result


class CholeskyInfo(NamedTuple):
    """Result of ``linalg.cholesky_ex``."""

    L: Tensor
    info: Tensor


@operation(function="linalg.cholesky_ex")
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:
    """Return ``cholesky`` and ``info``, without an error for a matrix that is not positive definite.

    Args:
        input: Hermitian matrices ``(..., n, n)``; only the lower triangle is read.
        upper: whether to return the upper triangular factor.
        check_errors: whether to raise the error.

    Returns:
        ``L`` ``(..., n, n)``, nan where a matrix is not positive definite, and ``info`` ``(...)``, int32, 1 there, else 0.

    Raises:
        LinAlgError: ``check_errors``, and a matrix is not positive definite.
    """
    bad = unfit(square("linalg.cholesky_ex", input), np.linalg.cholesky, check_errors)
    result = cholesky(replaced(input, bad), upper)
    return CholeskyInfo(result.masked_fill(Tensor(bad[..., None, None]), np.nan), Tensor(bad.astype(np.int32)))


@operation(function="linalg.qr")
def linalg_qr(A: Tensor, mode: Literal["reduced", "complete", "r"] = "reduced") -> QR:
    """Return the QR factors, ``A = Q @ R``: orthonormal columns in ``Q``, an upper triangular ``R``.

    Args:
        A: matrices ``(..., m, n)``; ``k`` is the smaller of the two.
        mode: "reduced" gives ``(..., m, k)`` and ``(..., k, n)``, "complete" ``(..., m, m)`` and ``(..., m, n)`` (not
            differentiable if ``m > n``), "r" an empty ``Q`` and the reduced ``R``.

    Raises:
        AutogradError: ``A`` is recorded, ``mode`` is "complete", and ``m > n``.
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions, or another mode.
    """
    x = matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'linalg.qr() takes mode "reduced", "complete" or "r", and you gave {mode!r}')
    rows, columns = x.shape[-2:]
    if mode == "complete" and rows > columns and records(A):
        raise AutogradError('linalg.qr() in mode "complete" has no gradient for more rows than columns; use "reduced"')
    q, r = (
        _qr_wide(A) if rows < columns and records(A) else _qr_tall(A, "complete" if mode == "complete" else "reduced")
    )
    return QR(Tensor(np.empty(0, x.dtype)) if mode == "r" else q, r)


@operation(method=True)
def qr(input: Tensor, some: bool = True) -> QR:
    """Return ``linalg.qr``: reduced if ``some``, else complete. Errors: those of ``linalg.qr``."""
    return linalg_qr(input, "reduced" if some else "complete")


def _qr_tall(a: Tensor, mode: Any) -> tuple[Tensor, Tensor]:
    q, r = (Tensor(part) for part in np.linalg.qr(a._array, mode))
    if records(a):
        record_outputs("linalg_qr", _qr_rule, (q, r), a)
    return q, r


def _qr_wide(a: Tensor) -> tuple[Tensor, Tensor]:
    # Q depends on the first columns only.
    rows = a.shape[-2]
    q, r = _qr_tall(a[..., :rows], "reduced")
    return q, cat([r, matmul(q.mH, a[..., rows:])], -1)


class Reflections(NamedTuple):
    """Result of ``geqrf``."""

    a: Tensor
    tau: Tensor


def _no_gradient(*args: Any) -> NoReturn:
    raise AutogradError("geqrf() has no gradient; use linalg.qr(), or detach its input")


@operation(method=True)
def geqrf(input: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Reflections:
    """Return the QR factors of matrices ``(..., m, n)`` in LAPACK's form: ``R``, with the reflections below its diagonal.

    Returns:
        ``a`` ``(..., m, n)`` and ``tau`` ``(..., min(m, n))``; ``Q`` is ``linalg.householder_product(a, tau)``. They have
        no gradient; those of ``linalg.qr`` have one.

    Raises:
        AutogradError: in the backward pass.
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions.
    """
    transposed, tau = np.linalg.qr(matrices("geqrf", input), "raw")
    result = Reflections(Tensor(np.ascontiguousarray(transposed.mT)), Tensor(tau))
    if records(input):
        record_outputs("geqrf", _no_gradient, result, input)
    return result


def _check(name: str, input: Tensor, tau: Tensor) -> None:
    x = matrices(name, input)
    if tau.dtype != input.dtype:
        raise TypeError(f"{name}() takes tensors of one dtype, and you gave {input.dtype} and {tau.dtype}")
    if x.shape[-2] < x.shape[-1]:
        raise ValueError(f"{name}() takes matrices with at least as many rows as columns, and you gave shape {x.shape}")
    if tau.ndim != x.ndim - 1 or tau.shape[:-1] != x.shape[:-2] or tau.shape[-1] > x.shape[-1]:
        raise ValueError(
            f"{name}() needs tau of shape {x.shape[:-2]} + (at most {x.shape[-1]},), and you gave {tau.shape}"
        )


def _vectors_and_weights(input: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """Return the matrices ``V`` and ``T`` of the product of reflections."""
    rows, count = input.shape[-2], tau.shape[-1]
    v = tril(input[..., :count], -1) + Tensor(np.eye(rows, count, dtype=input.dtype))
    above = tau[..., :, None] * triu(matmul(v.mH, v), 1)
    return v, triangle_solved(above, diag_embed(tau), True, True)


@operation(function="linalg.householder_product")
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the first n columns of the product of the reflections that ``geqrf`` returns, ``(..., m, n)``.

    Args:
        A: ``(..., m, n)`` with ``m >= n``; only the elements below the diagonal are read.
        tau: ``(..., k)`` with ``k <= n``, factors of the reflections.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are not floating-point or complex.
        ValueError: the shapes do not fit.
    """
    _check("linalg.householder_product", A, tau)
    v, t = _vectors_and_weights(A, tau)
    columns = A.shape[-1]
    return Tensor(np.eye(A.shape[-2], columns, dtype=A.dtype)) - matmul(v, matmul(t, v[..., :columns, :].mH))


@operation(method=True)
def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ``linalg.householder_product`` under LAPACK's name.

    Args:
        input: ``(..., m, n)`` with ``m >= n``; only the elements below the diagonal are read.
        tau: ``(..., k)`` with ``k <= n``, factors of the reflections.
        out: where the result is written.
    """
    return householder_product(input, tau)


@operation(method=True)
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return ``Q @ other``, of the shape of ``other``; ``Q`` ``(..., m, m)`` is the product of the reflections of ``geqrf``.

    Args:
        input: ``(..., m, n)``; only the elements below the diagonal are read.
        tau: ``(..., k)``, ``k`` the smaller of ``m`` and ``n``, factors of the reflections.
        other: ``(..., m, p)``, or ``(..., p, m)`` with ``left=False``.
        left: whether to compute ``Q @ other``; else ``other @ Q``.
        transpose: whether to use ``Q.mH`` instead of ``Q``.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are not floating-point or complex.
        ValueError: the shapes do not fit.
    """
    x = matrices("ormqr", input)
    matrices("ormqr", other)
    if tau.dtype != input.dtype or other.dtype != input.dtype:
        raise TypeError(
            f"ormqr() takes tensors of one dtype, and you gave {input.dtype}, {tau.dtype} and {other.dtype}"
        )
    expected = (*x.shape[:-2], min(x.shape[-2:]))
    if tau.shape != expected:
        raise ValueError(f"ormqr() needs tau of shape {expected}, and you gave {tau.shape}")
    if other.shape[-2 if left else -1] != x.shape[-2]:
        raise ValueError(f"ormqr() cannot multiply a Q of {x.shape[-2]} rows with shape {other.shape}")
    v, t = _vectors_and_weights(input, tau)
    t = t.mH if transpose else t
    change = matmul(v, matmul(t, matmul(v.mH, other))) if left else matmul(matmul(matmul(other, v), t), v.mH)
    return other - change
