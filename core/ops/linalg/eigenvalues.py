"""Eigenvalues and singular values of matrices, and their vectors, with gradients."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from ...tensors import Tensor
from ..shape.joining import cat
from ..table.nodes import records
from ..table.operation import operation
from ..table.outputs import record_outputs
from .checks import attempt, matrices, square
from .decompositions import identity

_UNCONVERGED = "could not be decomposed: it has nan or infinite elements, or the computation does not converge"


class Eigen(NamedTuple):
    """Result of ``linalg.eigh`` and ``linalg.eig``."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    """Result of ``linalg.svd``."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _eigh_rule(xp: Any, grads: Any, values: Any, vectors: Any) -> Any:
    # Giles (2008), 3.1.
    gvalues, gvectors = grads
    if gvectors is None:
        return xp.matmul(vectors * _row(xp, xp.cast(gvalues, vectors.dtype)), xp.adjoint(vectors))
    apart = _row(xp, values) - _column(xp, values)
    # Eigenvectors stay orthonormal: only the skew part of their gradient counts, and that of the matrix is Hermitian.
    projected = xp.matmul(xp.adjoint(vectors), gvectors)
    inside = (projected - xp.adjoint(projected)) * 0.5 * _reciprocals(xp, apart)
    if gvalues is not None:
        inside = inside + xp.cast(xp.diag_embed(gvalues), vectors.dtype)
    return xp.matmul(xp.matmul(vectors, inside), xp.adjoint(vectors))


def _row(xp: Any, x: Any) -> Any:
    return xp.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _column(xp: Any, x: Any) -> Any:
    return xp.reshape(x, (*x.shape, 1))


def _reciprocals(xp: Any, x: Any) -> Any:
    """Return ``1 / x`` outside the diagonal, and 0 on it."""
    diagonal = identity(x)
    return (1 - diagonal) / (x + diagonal)


def _eig_rule(xp: Any, grads: Any, values: Any, vectors: Any, kind: str) -> Any:
    # Boeddeker et al., "On the computation of complex-valued gradients with application to statistically optimum
    # beamforming" (2017), equation 4.77, for eigenvectors of length 1.
    gvalues, gvectors = grads
    vh = xp.adjoint(vectors)
    inside: Any = 0
    if gvectors is not None:
        apart = _row(xp, values) - _column(xp, values)
        projected = xp.matmul(vh, gvectors)
        own = xp.cast(xp.real(projected * identity(projected)), projected.dtype)
        inside = (projected - xp.matmul(xp.matmul(vh, vectors), own)) * xp.conj(_reciprocals(xp, apart))
    if gvalues is not None:
        inside = inside + xp.diag_embed(gvalues)
    result = xp.solve(vh, xp.matmul(inside, vh))
    return result if kind == "c" else xp.real(result)


def _svd_rule(xp: Any, grads: Any, u: Any, s: Any, vh: Any) -> Any:
    # Townsend, "Differentiating the singular value decomposition" (2016); for complex matrices Wan and Zhang,
    # "Automatic differentiation for complex valued SVD" (2019).
    gu, gs, gvh = grads
    if gu is None and gvh is None:
        return xp.matmul(u * _row(xp, xp.cast(gs, u.dtype)), vh)
    row, column = _row(xp, s), _column(xp, s)
    inside: Any = 0 if gs is None else xp.cast(xp.diag_embed(gs), u.dtype)
    apart = _reciprocals(xp, (row - column) * (row + column))
    if gu is not None:
        projected = xp.matmul(xp.adjoint(u), gu)
        inside = inside + (projected - xp.adjoint(projected)) * apart * row
        if u.dtype.kind == "c":
            inside = inside + (projected - xp.adjoint(projected)) * (identity(projected) * 0.25) / row
    if gvh is not None:
        projected = xp.matmul(vh, xp.adjoint(gvh))
        inside = inside + column * ((projected - xp.adjoint(projected)) * apart)
        if u.dtype.kind == "c":
            inside = inside - (projected - xp.adjoint(projected)) * (identity(projected) * 0.25) / row
    result = xp.matmul(xp.matmul(u, inside), vh)
    if gu is not None and u.shape[-2] > s.shape[-1]:
        outside = gu - xp.matmul(u, xp.matmul(xp.adjoint(u), gu))
        result = result + xp.matmul(outside / row, vh)
    if gvh is not None and vh.shape[-1] > s.shape[-1]:
        outside = gvh - xp.matmul(xp.matmul(gvh, xp.adjoint(vh)), vh)
        result = result + xp.matmul(u / row, outside)
    return result


@operation(function="linalg.eigh")
def eigh(A: Tensor, UPLO: Literal["L", "U"] = "L") -> Eigen:
    """Return eigenvalues ``(..., n)``, real and ascending, and orthonormal eigenvectors, the columns of ``(..., n, n)``.

    The gradient of eigenvectors is not finite where eigenvalues are equal.

    Args:
        A: Hermitian matrices ``(..., n, n)``.
        UPLO: the triangle that is read, "L" (lower) or "U" (upper).

    Raises:
        LinAlgError: the computation does not converge.
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    x = square("linalg.eigh", A)
    values, vectors = (Tensor(part) for part in attempt("linalg.eigh", _UNCONVERGED, np.linalg.eigh, x, UPLO.upper()))
    if records(A):
        record_outputs("linalg_eigh", _eigh_rule, (values, vectors), A)
    return Eigen(values, vectors)


@operation(function="linalg.eigvalsh")
def eigvalsh(A: Tensor, UPLO: Literal["L", "U"] = "L") -> Tensor:
    """Return the eigenvalues of Hermitian matrices ``(..., n, n)``, real and ascending: ``(..., n)``. Errors: ``eigh``'s."""
    if records(A):
        return eigh(A, UPLO).eigenvalues
    x = square("linalg.eigvalsh", A)
    return Tensor(attempt("linalg.eigvalsh", _UNCONVERGED, np.linalg.eigvalsh, x, UPLO.upper()))


@operation(function="linalg.eig")
def eig(A: Tensor) -> Eigen:
    """Return the eigenvalues ``(..., n)`` and eigenvectors (columns of length 1) of square matrices ``(..., n, n)``, complex.

    The gradient is right for losses that do not depend on the phase of the eigenvectors.

    Raises:
        LinAlgError: the computation does not converge.
        TypeError: the dtype is not floating-point or complex.
        ValueError: not square.
    """
    x = square("linalg.eig", A)
    wide = np.promote_types(x.dtype, np.complex64)
    parts = attempt("linalg.eig", _UNCONVERGED, np.linalg.eig, x)
    values, vectors = (Tensor(part.astype(wide, copy=False)) for part in parts)
    if records(A):
        record_outputs("linalg_eig", _eig_rule, (values, vectors), A, x.dtype.kind)
    return Eigen(values, vectors)


@operation(function="linalg.eigvals")
def eigvals(A: Tensor) -> Tensor:
    """Return the eigenvalues of square matrices ``(..., n, n)``, complex: ``(..., n)``. Errors: those of ``eig``."""
    if records(A):
        return eig(A).eigenvalues
    x = square("linalg.eigvals", A)
    values = attempt("linalg.eigvals", _UNCONVERGED, np.linalg.eigvals, x)
    return Tensor(values.astype(np.promote_types(x.dtype, np.complex64), copy=False))


@operation(function="linalg.svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """Return the singular value decomposition ``A = U @ diag(S) @ Vh``.

    Args:
        A: matrices ``(..., m, n)``; ``k`` is the smaller of the two.
        full_matrices: whether ``U`` and ``Vh`` are square; the gradient is that of the first ``k`` vectors.
        driver: ignored; LAPACK's gesdd is used.

    Returns:
        ``U`` ``(..., m, k)`` or ``(..., m, m)``, with orthonormal columns; ``S`` ``(..., k)``, real and descending; ``Vh``
        ``(..., k, n)`` or ``(..., n, n)``, with orthonormal rows.

    Raises:
        LinAlgError: the computation does not converge.
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions.
    """
    x = matrices("linalg.svd", A)
    u, s, vh = attempt("linalg.svd", _UNCONVERGED, np.linalg.svd, x, full_matrices)
    if not records(A):
        return SVD(Tensor(u), Tensor(s), Tensor(vh))
    k = s.shape[-1]
    parts = Tensor(u[..., :k]), Tensor(s), Tensor(vh[..., :k, :])
    record_outputs("linalg_svd", _svd_rule, parts, A)
    # The vectors beyond the k first are arbitrary, so these have no gradient.
    return SVD(_with(parts[0], u[..., k:], -1), parts[1], _with(parts[2], vh[..., k:, :], -2))


def _with(vectors: Tensor, others: Any, dim: int) -> Tensor:
    return cat([vectors, Tensor(others)], dim) if others.shape[dim] else vectors


@operation(function="linalg.svdvals")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values ``(..., min(m, n))``, descending, of ``(..., m, n)``. Errors: those of ``linalg.svd``."""
    if records(A):
        return linalg_svd(A, False).S
    return Tensor(attempt("linalg.svdvals", _UNCONVERGED, _singular_values, matrices("linalg.svdvals", A)))


def _singular_values(x: Any) -> Any:
    return np.linalg.svd(x, compute_uv=False)


class OldSVD(NamedTuple):
    """Result of ``svd``."""

    U: Tensor
    S: Tensor
    V: Tensor


@operation(method=True)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> OldSVD:
    """Return the older form of ``linalg.svd``: reduced if ``some``, and ``V`` instead of its adjoint.

    Args:
        input: matrices ``(..., m, n)``.
        some: whether to return only the first ``min(m, n)`` vectors.
        compute_uv: whether to return the vectors; else ``U`` and ``V`` are zeros.
    """
    u, s, vh = linalg_svd(input, not some)
    if not compute_uv:
        u, vh = Tensor(np.zeros_like(u._array)), Tensor(np.zeros_like(vh._array))
    return OldSVD(u, s, vh.mH)
