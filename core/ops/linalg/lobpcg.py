"""``lobpcg``: some eigenvalues of a large symmetric matrix, of which only products with vectors are needed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.grad_mode import is_grad_enabled, no_grad
from ...tensors import Tensor
from ...types import Array
from ..random.sampling import randn
from ..shape.joining import stack
from ..table.operation import published
from .decompositions import cholesky
from .eigenvalues import eigh
from .matrix_products import matmul
from .triangular import solve_triangular

Product = Callable[[Array], Array]


@published(function=True)
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[Any], Any] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return ``k`` eigenvalues of ``A x = e B x`` at one end of the spectrum, and their eigenvectors.

    By the locally optimal block preconditioned conjugate gradient method (Knyazev 2001, SIAM J. Sci. Comput. 23, 517), with
    an orthonormal basis in each step. Where gradients are recorded the matrix is decomposed whole, by ``linalg.eigh``.

    Args:
        A: symmetric matrices ``(..., m, m)``, or one sparse matrix.
        k: number of eigenvalues; the number of columns of ``X``, or 1, if ``None``.
        B: positive-definite matrices ``(..., m, m)``, or one sparse matrix; the identity if ``None``.
        X: vectors ``(..., m, n)`` to begin with; random ones if ``None``.
        n: number of random vectors, at least ``k``; ``k`` if ``None``.
        iK: preconditioner: an approximate inverse of ``A``, like it.
        niter: largest number of steps; 1000 if ``None``, and -1 for no limit.
        tol: relative residual at which a pair counts as found; the root of the dtype's precision if ``None``.
        largest: whether the largest eigenvalues are wanted, or the smallest ones.
        method: "basic" or "ortho"; both are the same here.
        tracker: called after each step with the iteration: ``E``, ``X``, ``R``, ``ivars`` ("istep", "converged_count"),
            ``tvars`` ("rerr"), and ``bvars``, where ``bvars["force_stop"] = True`` ends it.
        ortho_iparams: not used.
        ortho_fparams: not used.
        ortho_bparams: not used.

    Returns:
        The eigenvalues ``(..., k)``, the wanted end first, and the eigenvectors ``(..., m, k)``, orthonormal with ``B``.

    Raises:
        ValueError: there are fewer than ``3 n`` rows, ``n`` is below ``k``, ``A`` is not square, or ``method`` is unknown.
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"lobpcg() takes square matrices, and you gave the shape {A.shape}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f'lobpcg(): method is "basic" or "ortho", and you gave {method!r}')
    rows = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if not 1 <= k <= n or rows < 3 * n:
        raise ValueError(f"lobpcg() needs 1 <= k <= n and at least 3 n rows, and k is {k}, n is {n}, with {rows} rows")
    wanted = True if largest is None else largest
    if is_grad_enabled() and any(each is not None and each.requires_grad for each in (A, B)):
        return _decomposed(A, B, k, wanted)
    with no_grad():
        start = randn(*A.shape[:-1], n, dtype=A.dtype) if X is None else X
        return _iterated(A, B, iK, start, k, wanted, niter, tol, tracker)


def _decomposed(A: Tensor, B: Tensor | None, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and eigenvectors of a decomposition of the whole matrix, which has gradients."""
    A = A.to_dense() if A.is_sparse else A
    A = (A + A.mH) / 2
    if B is not None:
        factor = cholesky(B.to_dense() if B.is_sparse else B)
        A = solve_triangular(factor, solve_triangular(factor, A, upper=False).mH, upper=False)
        A = (A + A.mH) / 2
    values, vectors = eigh(A)
    chosen = slice(None, -k - 1, -1) if largest else slice(k)
    order = np.arange(A.shape[-1])[chosen]
    values, vectors = values[..., order], vectors[..., order]
    return values, vectors if B is None else solve_triangular(factor.mH, vectors, upper=True)


def _iterated(
    A: Tensor, B: Tensor | None, iK: Tensor | None, X: Tensor, k: int, largest: bool, niter: Any, tol: Any, tracker: Any
) -> tuple[Tensor, Tensor]:
    steps = range(1000 if niter is None else niter) if niter != -1 else itertools.count()
    tol = float(np.finfo(X.dtype).eps) ** 0.5 if tol is None else tol  # of complex numbers, that of their parts
    if A.ndim == 2:
        return _Iteration(A, B, iK, X.numpy(), largest).run(k, steps, tol, tracker)
    batch = A.shape[:-2]
    pairs = []
    for place in np.ndindex(batch):
        parts = [None if each is None else each[place] if each.ndim > 2 else each for each in (A, B, iK, X)]
        first, second, third, start = parts
        assert first is not None and start is not None
        pairs.append(_Iteration(first, second, third, start.numpy(), largest).run(k, steps, tol, tracker))
    values, vectors = (stack([pair[part] for pair in pairs]) for part in (0, 1))
    return values.reshape(*batch, *values.shape[1:]), vectors.reshape(*batch, *vectors.shape[1:])


class _Iteration:
    """Iteration for one matrix, as a tracker sees it.

    Args:
        A: the matrix.
        B: the matrix on the other side, or ``None``.
        iK: the preconditioner, or ``None``.
        start: the vectors to begin with, ``(m, n)``.
        largest: whether the largest eigenvalues are wanted.
    """

    def __init__(self, A: Tensor, B: Tensor | None, iK: Tensor | None, start: Array, largest: bool) -> None:
        self.A, self.B, self.iK = A, B, iK
        self._a, self._b, self._inverse = _product(A), _product(B), _product(iK)
        self._sign = -1 if largest else 1  # the wanted eigenvalues come first in ascending order
        self._before: Array | None = None
        self.ivars = {"istep": 0, "converged_count": 0}
        self.bvars = {"force_stop": False}
        self.tvars: dict[str, Tensor] = {}
        self._size = start.shape[1]
        self._rotate(_orthonormal(start, self._b))
        self._norm = float(np.linalg.norm(self._ax)) / max(float(np.linalg.norm(self._x)), 1e-300)

    @property
    def E(self) -> Tensor:  # noqa: N802 - PyTorch's name
        """Return the eigenvalues, as they are now."""
        return Tensor(self._e)

    @property
    def X(self) -> Tensor:  # noqa: N802 - PyTorch's name
        """Return the eigenvectors, as they are now."""
        return Tensor(self._x)

    @property
    def R(self) -> Tensor:  # noqa: N802 - PyTorch's name
        """Return the residuals."""
        return Tensor(self._ax - self._b(self._x) * self._e)

    def run(self, k: int, steps: Any, tol: float, tracker: Any) -> tuple[Tensor, Tensor]:
        """Return the first ``k`` pairs after at most ``steps``."""
        for self.ivars["istep"] in steps:
            residual = self._ax - self._b(self._x) * self._e
            if self._converged(residual, tol) >= k:
                break
            self._step(self._inverse(residual))
            if tracker is not None:
                tracker(self)
            if self.bvars["force_stop"]:
                break
        return Tensor(self._e[:k]), Tensor(np.ascontiguousarray(self._x[:, :k]))

    def _converged(self, residual: Array, tol: float) -> int:
        scale = np.linalg.norm(self._x, axis=0) * (self._norm + np.abs(self._e))
        errors = np.linalg.norm(residual, axis=0) / np.maximum(scale, np.finfo(scale.dtype).tiny)
        self.tvars["rerr"] = Tensor(errors)
        found = errors < tol
        self.ivars["converged_count"] = len(found) if found.all() else int(found.argmin())
        return self.ivars["converged_count"]

    def _step(self, directions: Array) -> None:
        parts = [self._x, directions] if self._before is None else [self._x, directions, self._before]
        former = self._x
        # Columns of length 1, so that what is nearly in the space of the others is seen as such.
        lengths = [np.maximum(np.linalg.norm(part, axis=0), np.finfo(part.real.dtype).tiny) for part in parts]
        basis = _orthonormal(np.concatenate([part / length for part, length in zip(parts, lengths)], 1), self._b)
        self._rotate(basis)
        self._before = self._x - former @ (former.conj().T @ self._b(self._x))

    def _rotate(self, basis: Array) -> None:
        """Let the vectors be the best ones in the space of an orthonormal ``basis`` (Rayleigh and Ritz)."""
        product = self._a(basis)
        inner = basis.conj().T @ product
        values, rotation = np.linalg.eigh(self._sign * (inner + inner.conj().T) / 2)
        rotation = rotation[:, : self._size]
        self._e, self._x, self._ax = self._sign * values[: self._size], basis @ rotation, product @ rotation


def _product(matrix: Tensor | None) -> Product:
    if matrix is None:
        return lambda x: x
    return lambda x: matmul(matrix, Tensor(x)).numpy()


def _orthonormal(x: Array, product: Product) -> Array:
    """Return a basis of the space of the columns of ``x``, orthonormal in the metric of ``product``.

    Columns that depend on others are left out (Stathopoulos and Wu 2002, SVQB). Twice, because once leaves rounding errors.
    """
    for _ in range(2):
        gram = x.conj().T @ product(x)
        values, rotation = np.linalg.eigh((gram + gram.conj().T) / 2)
        kept = values > values[-1] * np.finfo(values.dtype).eps * len(values)
        x = x @ (rotation[:, kept] / np.sqrt(values[kept]))
    return x
