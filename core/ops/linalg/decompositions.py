"""Matrices as products of triangular and orthogonal ones, with gradients: Cholesky and QR. For others see ``eigenvalues``."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from ...errors import AutogradError
from ...tensors import Tensor
from ..shape.joining import cat
from ..table.nodes import Row, keep_result, record, records
from ..table.operation import operation
from ..table.outputs import record_outputs
from .checks import attempt, matrices, replaced, square, unfit
from .matrix_products import matmul


class QR(NamedTuple):
    """What ``linalg.qr`` returns."""

    Q: Tensor
    R: Tensor


def identity(x: Any) -> Any:
    """The identity in the size and dtype of square matrices."""
    return np.eye(x.shape[-1], dtype=x.dtype)


def _cholesky_rule(xp: Any, g: Any, factor: Any) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), equation 9.
    lower = xp.tril(xp.matmul(xp.adjoint(factor), g), 0) * (1 - 0.5 * identity(factor)).astype(factor.dtype)
    half = xp.solve_triangular(xp.adjoint(factor), lower, True, False)
    whole = xp.adjoint(xp.solve_triangular(xp.adjoint(factor), xp.adjoint(half), True, False))
    return (whole + xp.adjoint(whole)) * 0.5


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
    symmetric = (upper + xp.adjoint(upper)) * (1 - 0.5 * identity(r)).astype(r.dtype)
    left = xp.matmul(q, symmetric)
    left = left if gq is None else left + gq
    return xp.adjoint(xp.solve_triangular(r, xp.adjoint(left), True, False))


_CHOLESKY = Row("linalg_cholesky", _cholesky_rule, holomorphic=False)

_INDEFINITE = "is not positive definite, so it has no Cholesky factor"


@operation(method=True, synonyms=("linalg.cholesky",))
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular ``L`` with ``L @ L.mH = input`` (``upper``: its adjoint) of Hermitian matrices ``(..., n, n)``.

    Only the lower triangle is read.

    Raises:
        LinAlgError: a matrix is not positive definite.
        TypeError: not of floating point.
        ValueError: not square.
    """
    x = square("linalg.cholesky", input)
    result = Tensor(attempt("linalg.cholesky", _INDEFINITE, np.linalg.cholesky, x))
    if records(input):
        record(_CHOLESKY, result, (input,), (keep_result(result),))
    return result.mH if upper else result


class CholeskyInfo(NamedTuple):
    """What ``linalg.cholesky_ex`` returns."""

    L: Tensor
    info: Tensor


@operation(function="linalg.cholesky_ex")
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:
    """``cholesky`` without an error: where a matrix is not positive definite ``info`` is 1, else 0, and ``L`` is nan.

    Raises:
        LinAlgError: ``check_errors``, and a matrix is not positive definite.
    """
    bad = unfit(square("linalg.cholesky_ex", input), np.linalg.cholesky, check_errors)
    result = cholesky(replaced(input, bad), upper)
    return CholeskyInfo(result.masked_fill(Tensor(bad[..., None, None]), np.nan), Tensor(bad.astype(np.int32)))


@operation(function="linalg.qr")
def linalg_qr(A: Tensor, mode: Literal["reduced", "complete", "r"] = "reduced") -> QR:
    """``A = Q @ R`` with orthonormal columns in ``Q`` and an upper triangular ``R``.

    Args:
        A: matrices ``(..., m, n)``; ``k`` is the smaller of the two.
        mode: "reduced" gives ``(..., m, k)`` and ``(..., k, n)``, "complete" ``(..., m, m)`` and ``(..., m, n)`` (not
            differentiable if ``m > n``), "r" an empty ``Q`` and the reduced ``R``.

    Raises:
        AutogradError: the result is not differentiable.
        TypeError: not of floating point.
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
    """``linalg.qr``: reduced if ``some``, else complete. Errors: those of ``linalg.qr``."""
    return linalg_qr(input, "reduced" if some else "complete")


def _qr_tall(a: Tensor, mode: Any) -> tuple[Tensor, Tensor]:
    q, r = (Tensor(part) for part in np.linalg.qr(a._array, mode))
    if records(a):
        record_outputs("linalg_qr", _qr_rule, (q, r), a)
    return q, r


def _qr_wide(a: Tensor) -> tuple[Tensor, Tensor]:
    # The first columns decide Q; the others are only turned by it.
    rows = a.shape[-2]
    q, r = _qr_tall(a[..., :rows], "reduced")
    return q, cat([r, matmul(q.mH, a[..., rows:])], -1)
