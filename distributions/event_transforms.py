"""Transforms of whole vectors and matrices: to probabilities, to Cholesky factors, and several elements as one event."""

from __future__ import annotations

from typing import Any

from ..core import arange, cat, clamp, exp, linalg, log, ones_like, sigmoid, softmax
from ..core import finfo as floating_info
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, Shape, sum_rightmost
from .odds import softplus
from .transforms import Transform


class AbsTransform(Transform):
    """The transform ``abs(x)``; its inverse gives the argument that is not negative."""

    codomain = constraints.positive
    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SoftmaxTransform(Transform):
    """The transform of vectors to probabilities in proportion to ``exp(x)``; its inverse is ``log(y)``."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = False
    event_dim = 1

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y)


class StickBreakingTransform(Transform):
    """The bijection of vectors of n - 1 numbers and n probabilities: each takes a part of what those before it left.

    The parts are ``sigmoid(x - log(k))`` where k elements come after, so that zeros give equal probabilities.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    event_dim = 1

    def _call(self, x: Tensor) -> Tensor:
        parts = sigmoid(x - log(_remaining(x)))
        info = floating_info(x.dtype)
        parts = clamp(parts, info.tiny, 1 - info.eps)
        one = ones_like(x[..., :1])
        return cat([parts, one], -1) * cat([one, (1 - parts).cumprod(-1)], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        taken = y[..., :-1]
        left = clamp(1 - taken.cumsum(-1), min=floating_info(y.dtype).tiny)
        return log(taken) - log(left) + log(_remaining(taken))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shifted = x - log(_remaining(x))
        return (log(y[..., :-1]) - softplus(shifted)).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] - 1)


def _remaining(x: Tensor) -> Tensor:
    return arange(x.shape[-1], 0, -1, dtype=x.dtype)


class LowerCholeskyTransform(Transform):
    """The transform of square matrices to lower triangular ones, whose diagonal is ``exp`` of the argument's."""

    domain = constraints.Constraint("matrices of real numbers", lambda x: (x == x).all((-2, -1)), 2)
    codomain = constraints.lower_cholesky
    event_dim = 2

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + exp(x.diagonal(dim1=-2, dim2=-1)).diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + log(y.diagonal(dim1=-2, dim2=-1)).diag_embed()


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """The transform of square matrices to positive-definite ones, the product of a Cholesky factor and its transpose."""

    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = super()._call(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return super()._inverse(linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """The transform of numbers to their probabilities under a distribution: its ``cdf``.

    Args:
        distribution: distribution of single numbers, with ``cdf``, ``icdf`` and ``log_prob``.
        cache_size: see ``Transform``.
    """

    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution
        self.domain = distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


class IndependentTransform(Transform):
    """Transform whose log-determinants are summed over more of the last dimensions.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: number of dimensions, at least 0, before those of its events.
        cache_size: see ``Transform``.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.event_dim = base_transform.event_dim + reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        self.sign: Any = base_transform.sign
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)
