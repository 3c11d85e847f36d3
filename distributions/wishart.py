"""``Wishart``: random covariance matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import arange, as_tensor, broadcast_to, clamp, digamma, linalg, log, mvlgamma, randn
from ..core.extend import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .gamma import Chi2
from .multivariate_normal import cholesky_factor


class Wishart(ExponentialFamily):
    """Wishart distribution of positive-definite matrices (``torch.distributions.Wishart``).

    With whole ``df``, the sum of ``x x^T`` over ``df`` normal vectors ``x`` of mean 0 and covariance ``C``.

    Args:
        df: degrees of freedom, above ``n - 1``.
        covariance_matrix: ``C``, positive definite, of shape ``(..., n, n)``.
        precision_matrix: the inverse of ``C``, of the same shape, instead.
        scale_tril: the Cholesky factor of ``C``, lower triangular with a positive diagonal, of the same shape, instead.
        validate_args: see ``Distribution``.

    Raises:
        LinAlgError: a matrix is not positive definite.
        ValueError: not exactly one matrix is given, or a parameter is outside its constraint.
    """

    arg_constraints: ClassVar = {"df": constraints.dependent, "scale_tril": constraints.lower_cholesky}
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        factor = cholesky_factor("Wishart", covariance_matrix, precision_matrix, scale_tril)
        if factor.ndim < 2:
            raise ValueError(f"Wishart needs a matrix, and you gave a tensor of shape {factor.shape}")
        df = df if isinstance(df, Tensor) else as_tensor(df, factor.dtype)
        batch = np.broadcast_shapes(df.shape, factor.shape[:-2])
        self.df = broadcast_to(df, batch)
        self.scale_tril = broadcast_to(factor, (*batch, *factor.shape[-2:]))
        super().__init__(batch, factor.shape[-2:], validate_args)
        if self._validate_args:
            self._require(constraints.greater_than(self._size - 1), self.df, "parameter df")

    @property
    def _size(self) -> int:
        return self.event_shape[-1]

    @property
    def covariance_matrix(self) -> Tensor:
        """Return ``C``, of shape ``(*batch_shape, n, n)``."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """Return the inverse of ``C``."""
        return linalg.inv(self.covariance_matrix)

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._size - 1
        return factor.masked_fill(factor <= 0, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (matrix**2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # Bartlett's decomposition: a triangle of normal variables, with roots of Chi2 variables on the diagonal.
        kind = self.scale_tril.dtype
        squares = Chi2(self.df.unsqueeze(-1) - arange(self._size, dtype=kind), validate_args=False).rsample(
            sample_shape
        )
        diagonal = clamp(squares.sqrt(), min=float(np.finfo(kind).eps))
        factor = self.scale_tril @ (randn(self._extended(sample_shape), dtype=kind).tril(-1) + diagonal.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        value, half = self._checked(value), self.df / 2
        inner = linalg.solve_triangular(self.scale_tril, value, upper=False)
        trace = linalg.solve_triangular(self.scale_tril.mT, inner, upper=True).diagonal(dim1=-2, dim2=-1).sum(-1)
        power = (self.df - self._size - 1) / 2
        return power * linalg.slogdet(value)[1] - trace / 2 - self.df * self._scale - mvlgamma(half, self._size)

    @property
    def _scale(self) -> Tensor:
        """Return half the logarithm of ``det(2 C)``."""
        return self._size * math.log(2) / 2 + log(self.scale_tril.diagonal(dim1=-2, dim2=-1)).sum(-1)

    def entropy(self) -> Tensor:
        n, half = self._size, self.df / 2
        slopes = digamma(half.unsqueeze(-1) - arange(n, dtype=half.dtype) / 2).sum(-1)
        return (n + 1) * self._scale + mvlgamma(half, n) - (self.df - n - 1) / 2 * slopes + self.df * n / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._size - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        matrix, power = natural_params
        half = power + (self._size + 1) / 2
        return mvlgamma(half, self._size) - half * linalg.slogdet(-matrix)[1]
