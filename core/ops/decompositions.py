"""Matrix decompositions with gradients: Cholesky, QR, eigenvalues, singular values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import AutogradError
from ..operation import operation
from ..tensor import Tensor
from .joining import cat
from .linalg_errors import attempt, matrices, replaced, square, unfit
from .matrix_products import matmul
from .several import record_several
from .table import Row, keep_result, record, records

__all__ = ["qr", "svd"]
METHODS = ("cholesky", "qr", "svd")


class QR(NamedTuple):
    """What ``linalg.qr`` returns."""

    Q: Tensor
    R: Tensor


class Eigen(NamedTuple):
    """What ``linalg.eigh`` and ``linalg.eig`` return."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    """What ``linalg.svd`` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _eye(x: Any) -> Any:
    return np.eye(x.shape[-1], dtype=x.dtype)


def _cholesky_rule(xp: Any, g: Any, factor: Any) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), equation 9.
    lower = xp.tril(xp.matmul(xp.adjoint(factor), g), 0) * (1 - 0.5 * _eye(factor)).astype(factor.dtype)
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
    symmetric = (upper + xp.adjoint(upper)) * (1 - 0.5 * _eye(r)).astype(r.dtype)
    left = xp.matmul(q, symmetric)
    left = left if gq is None else left + gq
    return xp.adjoint(xp.solve_triangular(r, xp.adjoint(left), True, False))


def _eigh_rule(xp: Any, grads: Any, values: Any, vectors: Any) -> Any:
    # Giles (2008), 3.1.
    gvalues, gvectors = grads
    inside: Any = 0
    if gvectors is not None:
        apart = _row(xp, values) - _column(xp, values)
        inside = xp.matmul(xp.adjoint(vectors), gvectors) * _reciprocals(xp, apart)
    if gvalues is not None:
        inside = inside + xp.cast(xp.diag_embed(gvalues), vectors.dtype)
    return xp.matmul(xp.matmul(vectors, inside), xp.adjoint(vectors))


def _row(xp: Any, x: Any) -> Any:
    return xp.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _column(xp: Any, x: Any) -> Any:
    return xp.reshape(x, (*x.shape, 1))


def _reciprocals(xp: Any, x: Any) -> Any:
    """``1 / x`` beside the diagonal, and 0 on it."""
    diagonal = _eye(x)
    return (1 - diagonal) / (x + diagonal)


def _eig_rule(xp: Any, grads: Any, values: Any, vectors: Any, kind: str) -> Any:
    # Boeddeker et al., "On the computation of complex-valued gradients with application to statistically optimum
    # beamforming" (2017), equation 4.77, for eigenvectors of length 1.
    gvalues, gvectors = grads
    vh = xp.adjoint(vectors)
    inside: Any = 0
    if gvectors is not None:
        apart = _row(xp, values) - _column(xp, values)
        turned = xp.matmul(vh, gvectors)
        own = xp.cast(xp.real(turned * _eye(turned)), turned.dtype)
        inside = (turned - xp.matmul(xp.matmul(vh, vectors), own)) * xp.conj(_reciprocals(xp, apart))
    if gvalues is not None:
        inside = inside + xp.diag_embed(gvalues)
    result = xp.solve(vh, xp.matmul(inside, vh))
    return result if kind == "c" else xp.real(result)


def _svd_rule(xp: Any, grads: Any, u: Any, s: Any, vh: Any) -> Any:
    # Townsend, "Differentiating the singular value decomposition" (2016); for complex matrices Wan and Zhang,
    # "Automatic differentiation for complex valued SVD" (2019).
    gu, gs, gvh = grads
    row, column = _row(xp, s), _column(xp, s)
    inside: Any = 0
    if gs is not None:
        inside = xp.cast(xp.diag_embed(gs), u.dtype)
    if gu is not None or gvh is not None:
        apart = _reciprocals(xp, (row - column) * (row + column))
        if gu is not None:
            turned = xp.matmul(xp.adjoint(u), gu)
            inside = inside + (turned - xp.adjoint(turned)) * apart * row
            if u.dtype.kind == "c":
                inside = inside + (turned - xp.adjoint(turned)) * (_eye(turned) * 0.25) / row
        if gvh is not None:
            turned = xp.matmul(vh, xp.adjoint(gvh))
            inside = inside + column * ((turned - xp.adjoint(turned)) * apart)
            if u.dtype.kind == "c":
                inside = inside - (turned - xp.adjoint(turned)) * (_eye(turned) * 0.25) / row
    result = xp.matmul(xp.matmul(u, inside), vh) if not isinstance(inside, int) else 0
    if gu is not None and u.shape[-2] > s.shape[-1]:
        outside = gu - xp.matmul(u, xp.matmul(xp.adjoint(u), gu))
        result = result + xp.matmul(outside / row, vh)
    if gvh is not None and vh.shape[-1] > s.shape[-1]:
        outside = gvh - xp.matmul(xp.matmul(gvh, xp.adjoint(vh)), vh)
        result = result + xp.matmul(u / row, outside)
    return result


_CHOLESKY = Row("linalg_cholesky", _cholesky_rule, holomorphic=False)

_INDEFINITE = "is not positive definite, so it has no Cholesky factor"


@operation
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


@operation
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:
    """``cholesky`` without an error: where a matrix is not positive definite ``info`` is 1, else 0, and ``L`` is nan.

    Raises:
        LinAlgError: ``check_errors``, and a matrix is not positive definite.
    """
    bad = unfit(square("linalg.cholesky_ex", input), np.linalg.cholesky, check_errors)
    result = cholesky(replaced(input, bad), upper)
    return CholeskyInfo(result.masked_fill(Tensor(bad[..., None, None]), np.nan), Tensor(bad.astype(np.int32)))


@operation
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


@operation
def qr(input: Tensor, some: bool = True) -> QR:
    """``linalg.qr``: reduced if ``some``, else complete. Errors: those of ``linalg.qr``."""
    return linalg_qr(input, "reduced" if some else "complete")


def _qr_tall(a: Tensor, mode: Any) -> tuple[Tensor, Tensor]:
    q, r = (Tensor(part) for part in np.linalg.qr(a._array, mode))
    if records(a):
        record_several("LinalgQrBackward", _qr_rule, (q, r), a)
    return q, r


def _qr_wide(a: Tensor) -> tuple[Tensor, Tensor]:
    # The first columns decide Q; the others are only turned by it.
    rows = a.shape[-2]
    q, r = _qr_tall(a[..., :rows], "reduced")
    return q, cat([r, matmul(q.mH, a[..., rows:])], -1)


@operation
def eigh(A: Tensor, UPLO: Literal["L", "U"] = "L") -> Eigen:
    """Eigenvalues, ascending and real, and orthonormal eigenvectors (columns) of Hermitian matrices ``(..., n, n)``.

    Only the triangle ``UPLO`` is read. The gradient of eigenvectors is not finite where eigenvalues are equal.

    Raises:
        LinAlgError: the computation does not converge.
        TypeError: not of floating point.
        ValueError: not square.
    """
    x = square("linalg.eigh", A)
    values, vectors = (Tensor(part) for part in attempt("linalg.eigh", _UNCONVERGED, np.linalg.eigh, x, UPLO.upper()))
    if records(A):
        record_several("LinalgEighBackward", _eigh_rule, (values, vectors), A)
    return Eigen(values, vectors)


@operation
def eigvalsh(A: Tensor, UPLO: Literal["L", "U"] = "L") -> Tensor:
    """The eigenvalues of ``eigh``. Errors: those of ``eigh``."""
    if records(A):
        return eigh(A, UPLO).eigenvalues
    x = square("linalg.eigvalsh", A)
    return Tensor(attempt("linalg.eigvalsh", _UNCONVERGED, np.linalg.eigvalsh, x, UPLO.upper()))


@operation
def eig(A: Tensor) -> Eigen:
    """Eigenvalues and eigenvectors (columns of length 1), complex, of square matrices ``(..., n, n)``.

    The gradient of eigenvectors supposes a loss that does not depend on their phase.

    Raises:
        LinAlgError: the computation does not converge.
        TypeError: not of floating point.
        ValueError: not square.
    """
    x = square("linalg.eig", A)
    wide = np.promote_types(x.dtype, np.complex64)
    parts = attempt("linalg.eig", _UNCONVERGED, np.linalg.eig, x)
    values, vectors = (Tensor(part.astype(wide, copy=False)) for part in parts)
    if records(A):
        record_several("LinalgEigBackward", _eig_rule, (values, vectors), A, x.dtype.kind)
    return Eigen(values, vectors)


@operation
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of ``eig``, complex. Errors: those of ``eig``."""
    if records(A):
        return eig(A).eigenvalues
    x = square("linalg.eigvals", A)
    values = attempt("linalg.eigvals", _UNCONVERGED, np.linalg.eigvals, x)
    return Tensor(values.astype(np.promote_types(x.dtype, np.complex64), copy=False))


@operation
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """``A = U @ diag(S) @ Vh`` with orthonormal columns in ``U`` and rows in ``Vh``, and ``S`` descending.

    Args:
        A: matrices ``(..., m, n)``; ``k`` is the smaller of the two.
        full_matrices: ``U`` and ``Vh`` square, ``(..., m, m)`` and ``(..., n, n)``, instead of ``(..., m, k)`` and
            ``(..., k, n)``; then only ``S`` is differentiable, unless ``m`` is ``n``.
        driver: accepted; LAPACK's gesdd it is.

    Raises:
        LinAlgError: the computation does not converge.
        TypeError: not of floating point.
        ValueError: fewer than 2 dimensions.
    """
    x = matrices("linalg.svd", A)
    recorded, whole = records(A), full_matrices and x.shape[-1] != x.shape[-2]
    u, s, vh = (
        Tensor(part) for part in attempt("linalg.svd", _UNCONVERGED, np.linalg.svd, x, full_matrices and not recorded)
    )
    if not recorded:
        return SVD(u, s, vh)
    record_several("LinalgSvdBackward", _svd_rule, (u, s, vh), A)
    if not whole:
        return SVD(u, s, vh)
    # The vectors beyond the k first are arbitrary, so these have no gradient.
    u_whole, _, vh_whole = np.linalg.svd(x, True)
    return SVD(Tensor(u_whole), s, Tensor(vh_whole))


@operation
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, descending. Errors: those of ``linalg.svd``."""
    if records(A):
        return linalg_svd(A, False).S
    return Tensor(attempt("linalg.svdvals", _UNCONVERGED, _singular_values, matrices("linalg.svdvals", A)))


def _singular_values(x: Any) -> Any:
    return np.linalg.svd(x, compute_uv=False)


_UNCONVERGED = "could not be decomposed: it has nan or infinite elements, or the computation does not converge"


class OldSVD(NamedTuple):
    """What ``svd`` returns."""

    U: Tensor
    S: Tensor
    V: Tensor


@operation
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> OldSVD:
    """The older form of ``linalg.svd``: reduced if ``some``, and ``V`` instead of its adjoint."""
    u, s, vh = linalg_svd(input, not some)
    if not compute_uv:
        u, vh = Tensor(np.zeros_like(u._array)), Tensor(np.zeros_like(vh._array))
    return OldSVD(u, s, vh.mH)
