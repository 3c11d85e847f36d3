"""Approximate singular values and principal components of large matrices, from random projections.

N. Halko, P.-G. Martinsson and J. A. Tropp, "Finding structure with randomness" (SIAM Review 53, 2011), algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from ...tensors import Tensor
from ..random.sampling import randn
from ..reduce.reductions import mean
from ..shape.transposing import adjoint
from ..table.operation import operation
from .checks import matrices
from .decompositions import linalg_qr
from .eigenvalues import OldSVD, linalg_svd
from .matrix_products import matmul


def _basis(a: Tensor, q: int, niter: int) -> Tensor:
    """Return ``q`` orthonormal columns that span nearly the same space as the first ``q`` left singular vectors."""
    q_columns = linalg_qr(matmul(a, randn(*a.shape[:-2], a.shape[-1], q, dtype=a.dtype))).Q
    for _ in range(niter):
        q_columns = linalg_qr(matmul(adjoint(a), q_columns)).Q
        q_columns = linalg_qr(matmul(a, q_columns)).Q
    return q_columns


@operation(function=True)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> OldSVD:
    """Return approximately the ``q`` largest singular values and vectors: ``A - M`` is about ``U @ diag(S) @ V.mH``.

    Args:
        A: matrices ``(..., m, n)``.
        q: number of singular values; a few more than needed makes them more accurate.
        niter: number of power iterations, for singular values that fall slowly.
        M: subtracted from ``A``, broadcast; nothing if ``None``.

    Returns:
        ``U`` ``(..., m, q)``, ``S`` ``(..., q)`` and ``V`` ``(..., n, q)``.

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: fewer than 2 dimensions, or a negative ``niter``.
    """
    x = matrices("svd_lowrank", A)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if niter < 0:
        raise ValueError(f"svd_lowrank() takes niter of 0 or more, and you gave {niter}")
    whole = A if M is None else A - M
    if x.shape[-2] < x.shape[-1]:
        basis = _basis(adjoint(whole), q, niter)
        u, s, vh = linalg_svd(matmul(whole, basis), full_matrices=False)
        return OldSVD(u, s, matmul(basis, adjoint(vh)))
    basis = _basis(whole, q, niter)
    u, s, vh = linalg_svd(matmul(adjoint(basis), whole), full_matrices=False)
    return OldSVD(matmul(basis, u), s, adjoint(vh))


@operation(function=True)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> OldSVD:
    """Return approximately the ``q`` largest principal components: ``svd_lowrank`` of the samples minus their mean.

    Args:
        A: samples in rows, ``(..., m, n)``.
        q: number of components; the smallest of 6, ``m`` and ``n`` if ``None``.
        center: whether to subtract the mean of the rows.
        niter: number of power iterations, for singular values that fall slowly.

    Returns:
        ``U`` ``(..., m, q)``, ``S`` ``(..., q)`` and ``V`` ``(..., n, q)``, whose columns are the components.

    Raises:
        TypeError: the dtype is not floating-point or complex.
        ValueError: ``q`` is not from 0 to the smaller of ``m`` and ``n``, or ``niter`` is negative.
    """
    smaller = min(matrices("pca_lowrank", A).shape[-2:])
    q = min(6, smaller) if q is None else q
    if not 0 <= q <= smaller:
        raise ValueError(f"pca_lowrank() takes q from 0 to {smaller} for shape {A.shape}, and you gave {q}")
    if niter < 0:
        raise ValueError(f"pca_lowrank() takes niter of 0 or more, and you gave {niter}")
    return svd_lowrank(A, q, niter, mean(A, -2, True) if center else None)
