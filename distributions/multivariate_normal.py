"""``MultivariateNormal``: normal vectors, by their mean and what spreads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import as_tensor, broadcast_to, linalg, log, matmul, randn
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution


class MultivariateNormal(Distribution):
    """Normal vectors with mean ``loc``, (..., D), and one of three matrices, (..., D, D).

    Args:
        loc: the mean.
        covariance_matrix: positive-definite.
        precision_matrix: its inverse.
        scale_tril: its lower-triangular Cholesky factor; the others are made into it.

    Raises:
        ValueError: not just one of the matrices is given, or it is not such a matrix.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
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
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {name: matrix for name, matrix in matrices.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError(f"MultivariateNormal takes one of {', '.join(matrices)}, and you gave {len(given)}")
        ((name, matrix),) = given.items()
        loc, matrix = as_tensor(loc), as_tensor(matrix)
        if loc.ndim < 1 or matrix.shape[-2:] != (loc.shape[-1], loc.shape[-1]):
            raise ValueError(
                f"MultivariateNormal: loc must have shape (..., D) and {name} (..., D, D), not {loc.shape} and {matrix.shape}"
            )
        batch = np.broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
        self.loc = broadcast_to(loc, (*batch, loc.shape[-1]))
        vars(self)[name] = broadcast_to(matrix, (*batch, *matrix.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args)
        self._factor = _factor(name, vars(self)[name])

    def __getattr__(self, name: str) -> Tensor:
        """The matrices that were not given."""
        if name == "scale_tril":
            return self._factor
        if name == "covariance_matrix":
            return matmul(self._factor, self._factor.mT)
        if name == "precision_matrix":
            return linalg.inv(self.covariance_matrix)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (self._factor * self._factor).sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self._spread(randn(self._extended(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        away = self._checked(value) - self.loc
        shape = np.broadcast_shapes(away.shape[:-1], self.batch_shape)
        factor = broadcast_to(self._factor, (*shape, *self._factor.shape[-2:]))
        standard = linalg.solve_triangular(factor, away.unsqueeze(-1), upper=False).squeeze(-1)
        return -0.5 * ((standard * standard).sum(-1) + self.event_shape[0] * math.log(2 * math.pi)) - self._log_scale()

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_scale()

    def _spread(self, standard: Tensor) -> Tensor:
        return matmul(self._factor, standard.unsqueeze(-1)).squeeze(-1)

    def _log_scale(self) -> Tensor:
        """Half the logarithm of the covariance's determinant."""
        return log(self._factor.diagonal(dim1=-2, dim2=-1)).sum(-1)


def _factor(name: str, matrix: Tensor) -> Tensor:
    if name == "scale_tril":
        return matrix
    return linalg.cholesky(matrix if name == "covariance_matrix" else linalg.inv(matrix))


def divergence(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    """The Kullback-Leibler divergence of ``p`` from ``q``."""
    batch = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    size = p.event_shape[0]
    factor = broadcast_to(q._factor, (*batch, size, size))
    ratio = linalg.solve_triangular(factor, broadcast_to(p._factor, (*batch, size, size)), upper=False)
    shift = linalg.solve_triangular(factor, (q.loc - p.loc).unsqueeze(-1), upper=False)
    squares = (ratio * ratio).sum((-2, -1)) + (shift * shift).sum((-2, -1))
    return 0.5 * (squares - size) + q._log_scale() - p._log_scale()
