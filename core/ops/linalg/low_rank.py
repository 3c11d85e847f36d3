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
    """Return orthonormal columns that span about what the ``q`` largest singular vectors do."""
    q_columns = linalg_qr(matmul(a, randn(*a.shape[:-2], a.shape[-1], q, dtype=a.dtype))).Q
    for _ in range(niter):
        q_columns = linalg_qr(matmul(adjoint(a), q_columns)).Q
        q_columns = linalg_qr(matmul(a, q_columns)).Q
    return q_columns


@operation(function=True)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> OldSVD:
    """Return about the ``q`` largest singular values and vectors, ``A - M = U @ diag(S) @ V.mH``, from random projections.

    Args:
        A: ``(..., m, n)``.
        q: how many; a few more than are needed.
        niter: how often the projection is repeated, for singular values that fall slowly.
        M: subtracted from ``A``, broadcast.

    Returns:
        ``U`` ``(..., m, q)``, ``S`` ``(..., q)`` and ``V`` ``(..., n, q)``.

    Raises:
        TypeError: not of floating point.
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
    """Return about the ``q`` largest principal components of samples (rows): ``svd_lowrank`` without the mean.

    Args:
        A: ``(..., m, n)``.
        q: how many; at most 6 by default.
        center: subtract the mean of the rows.
        niter: as for ``svd_lowrank``.

    Raises:
        TypeError: not of floating point.
        ValueError: ``q`` is not from 0 to the smaller of ``m`` and ``n``, or ``niter`` is negative.
    """
    smaller = min(matrices("pca_lowrank", A).shape[-2:])
    q = min(6, smaller) if q is None else q
    if not 0 <= q <= smaller:
        raise ValueError(f"pca_lowrank() takes q from 0 to {smaller} for shape {A.shape}, and you gave {q}")
    if niter < 0:
        raise ValueError(f"pca_lowrank() takes niter of 0 or more, and you gave {niter}")
    return svd_lowrank(A, q, niter, mean(A, -2, True) if center else None)
