"""``MultivariateNormal``: normal vectors whose elements are correlated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..core import broadcast_to, linalg, log, randn
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution


class MultivariateNormal(Distribution):
    """Multivariate normal distribution, given by one of three matrices (``torch.distributions.MultivariateNormal``).

    Density at ``x``: ``exp(-(x - loc)^T C^-1 (x - loc) / 2) / sqrt((2 pi)**n det C)`` with the covariance matrix ``C``.

    Args:
        loc: the mean, of shape ``(..., n)``.
        covariance_matrix: ``C``, positive definite, of shape ``(..., n, n)``.
        precision_matrix: the inverse of ``C``, of the same shape, instead.
        scale_tril: the Cholesky factor of ``C``, lower triangular with a positive diagonal, of the same shape, instead.
        validate_args: see ``Distribution``.

    Raises:
        LinAlgError: a matrix is not positive definite.
        ValueError: not exactly one matrix is given, or a parameter is outside its constraint.
    """

    arg_constraints: ClassVar = {"loc": constraints.real_vector, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        scale_tril = cholesky_factor("MultivariateNormal", covariance_matrix, precision_matrix, scale_tril)
        batch = np.broadcast_shapes(loc.shape[:-1], scale_tril.shape[:-2])
        self.loc = broadcast_to(loc, (*batch, *loc.shape[-1:]))
        self.scale_tril = broadcast_to(scale_tril, (*batch, *scale_tril.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args)

    @property
    def covariance_matrix(self) -> Tensor:
        """Return the covariances of the elements, of shape ``(*batch_shape, n, n)``."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """Return the inverse of the covariance matrix."""
        return linalg.inv(self.covariance_matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (self.scale_tril * self.scale_tril).sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        standard = randn(self._extended(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self.scale_tril @ standard.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        squares = self._squares((self._checked(value) - self.loc).unsqueeze(-1))
        return -0.5 * (squares + self._size * math.log(2 * math.pi)) - self._half_log_det

    def entropy(self) -> Tensor:
        return 0.5 * self._size * (1 + math.log(2 * math.pi)) + self._half_log_det

    @property
    def _size(self) -> int:
        return self.event_shape[0]

    # The three that the divergence of normal distributions needs.

    def _squares(self, columns: Tensor) -> Tensor:
        """Return the sum of the squared lengths of ``columns`` ``(..., n, k)`` in the metric of the precision matrix."""
        standard = linalg.solve_triangular(self.scale_tril, columns, upper=False)
        return (standard * standard).sum((-2, -1))

    @property
    def _half_log_det(self) -> Tensor:
        return log(linalg.diagonal(self.scale_tril)).sum(-1)

    @property
    def _root(self) -> Tensor:
        """Return a matrix whose product with its transpose is the covariance matrix."""
        return self.scale_tril


def cholesky_factor(
    name: str, covariance_matrix: Tensor | None, precision_matrix: Tensor | None, scale_tril: Tensor | None
) -> Tensor:
    """Return the Cholesky factor of the one matrix that is given.

    Args:
        name: the distribution, for the error.
        covariance_matrix: the matrix.
        precision_matrix: its inverse.
        scale_tril: its Cholesky factor.

    Raises:
        LinAlgError: a matrix is not positive definite.
        ValueError: not exactly one is given.
    """
    if sum(each is not None for each in (covariance_matrix, precision_matrix, scale_tril)) != 1:
        raise ValueError(f"{name} needs exactly one of covariance_matrix, precision_matrix and scale_tril")
    if scale_tril is not None:
        return scale_tril
    return linalg.cholesky(linalg.inv(precision_matrix) if covariance_matrix is None else covariance_matrix)  # type: ignore[arg-type]
