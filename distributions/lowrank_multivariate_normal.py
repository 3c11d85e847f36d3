"""``LowRankMultivariateNormal``: normal vectors whose covariance is a diagonal and a matrix of low rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..core import broadcast_to, cat, eye, linalg, log, randn
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution


class LowRankMultivariateNormal(Distribution):
    """Multivariate normal distribution of covariance ``W W^T + D`` (``torch.distributions.LowRankMultivariateNormal``).

    Inverse and determinant are computed of a matrix of ``rank`` rows, by Woodbury's identity and the matrix determinant lemma.

    Args:
        loc: the mean, of shape ``(..., n)``.
        cov_factor: ``W``, of shape ``(..., n, rank)``.
        cov_diag: the diagonal of ``D``, numbers above 0, of shape ``(..., n)``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: the shapes do not fit, or a parameter is outside its constraint.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.positive_vector,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        size = loc.shape[-1:]
        if not size or cov_factor.shape[-2:-1] != size or cov_diag.shape[-1:] != size:
            raise ValueError(
                "LowRankMultivariateNormal needs loc (..., n), cov_factor (..., n, rank) and cov_diag (..., n), and you gave "
                f"the shapes {loc.shape}, {cov_factor.shape} and {cov_diag.shape}"
            )
        batch = np.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = broadcast_to(loc, (*batch, *size))
        self.cov_factor = broadcast_to(cov_factor, (*batch, *cov_factor.shape[-2:]))
        self.cov_diag = broadcast_to(cov_diag, (*batch, *size))
        super().__init__(batch, size, validate_args)
        rank = cov_factor.shape[-1]
        capacitance = eye(rank, dtype=loc.dtype) + cov_factor.mT @ (cov_factor / cov_diag.unsqueeze(-1))
        self._capacitance_tril = linalg.cholesky(capacitance)

    @property
    def covariance_matrix(self) -> Tensor:
        """Return the covariances of the elements, of shape ``(*batch_shape, n, n)``."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def precision_matrix(self) -> Tensor:
        """Return the inverse of the covariance matrix."""
        part = self._projected(eye(self.event_shape[0], dtype=self.loc.dtype))
        return (1 / self.cov_diag).diag_embed() - part.mT @ part

    @property
    def scale_tril(self) -> Tensor:
        """Return the Cholesky factor of the covariance matrix."""
        return linalg.cholesky(self.covariance_matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (self.cov_factor * self.cov_factor).sum(-1) + self.cov_diag

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape, kind = self._extended(sample_shape), self.loc.dtype
        of_factor = randn((*shape[:-1], self.cov_factor.shape[-1], 1), dtype=kind)
        of_diagonal = randn(shape, dtype=kind)
        return self.loc + (self.cov_factor @ of_factor).squeeze(-1) + self.cov_diag.sqrt() * of_diagonal

    def log_prob(self, value: Tensor) -> Tensor:
        squares = self._squares((self._checked(value) - self.loc).unsqueeze(-1))
        return -0.5 * (squares + self.event_shape[0] * math.log(2 * math.pi)) - self._half_log_det

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det

    def _projected(self, columns: Tensor) -> Tensor:
        return linalg.solve_triangular(
            self._capacitance_tril, self.cov_factor.mT @ (columns / self.cov_diag.unsqueeze(-1)), upper=False
        )

    # The three that the divergence of normal distributions needs.

    def _squares(self, columns: Tensor) -> Tensor:
        """Return the sum of the squared lengths of ``columns`` ``(..., n, k)`` in the metric of the precision matrix."""
        part = self._projected(columns)
        return (columns * columns / self.cov_diag.unsqueeze(-1)).sum((-2, -1)) - (part * part).sum((-2, -1))

    @property
    def _half_log_det(self) -> Tensor:
        return log(linalg.diagonal(self._capacitance_tril)).sum(-1) + 0.5 * log(self.cov_diag).sum(-1)

    @property
    def _root(self) -> Tensor:
        """Return a matrix whose product with its transpose is the covariance matrix."""
        return cat([self.cov_factor, self.cov_diag.sqrt().diag_embed()], -1)
