"""Transforms of single numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import as_tensor, clamp, exp, log, log1p, logit, sigmoid, tanh, zeros_like
from ...core import finfo as floating_info
from ...core.extend import Tensor
from .. import constraints
from ..distribution import Distribution, Shape, sum_rightmost
from ..odds import softplus
from .base import Transform


class AffineTransform(Transform):
    """The transform ``loc + scale * x``.

    Args:
        loc: number or tensor that broadcasts with ``x``.
        scale: number or tensor that broadcasts with ``x``, not 0.
        event_dim: number of last dimensions over which ``log_abs_det_jacobian`` is summed.
        cache_size: see ``Transform``.
    """

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self.sign = as_tensor(scale).detach().sign()
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log_scale = zeros_like(x) + log(
            as_tensor(self.scale, None if isinstance(self.scale, Tensor) else x.dtype).abs()
        )
        return sum_rightmost(log_scale, self.event_dim)

    def forward_shape(self, shape: Shape) -> Shape:
        return _with(shape, self.loc, self.scale)

    def inverse_shape(self, shape: Shape) -> Shape:
        return _with(shape, self.loc, self.scale)


class ExpTransform(Transform):
    """The transform ``exp(x)``."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """The transform ``x ** exponent`` of numbers above 0.

    Args:
        exponent: number or tensor that broadcasts with ``x``, not 0.
        cache_size: see ``Transform``.
    """

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = as_tensor(exponent)
        self.sign = self.exponent.detach().sign()

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return log((self.exponent * y / x).abs())

    def forward_shape(self, shape: Shape) -> Shape:
        return _with(shape, self.exponent)

    def inverse_shape(self, shape: Shape) -> Shape:
        return _with(shape, self.exponent)


class SigmoidTransform(Transform):
    """The transform ``sigmoid(x)``."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        info = floating_info(x.dtype)
        return clamp(sigmoid(x), info.tiny, 1 - info.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        info = floating_info(y.dtype)
        return logit(clamp(y, info.tiny, 1 - info.eps))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """The transform ``log(1 + exp(x))``."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(-(-y).expm1()) + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(Transform):
    """The transform ``tanh(x)``. Its derivative is computed from ``x``, which is exact where ``tanh(x)`` rounds to 1."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (log1p(y) - log1p(-y)) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """The transform ``abs(x)``; its inverse gives the argument that is not negative."""

    codomain = constraints.positive
    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


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


def _with(shape: Shape, *parameters: Any) -> Shape:
    """Return ``shape`` broadcast with those of the parameters that are tensors."""
    return np.broadcast_shapes(shape, *(each.shape for each in parameters if isinstance(each, Tensor)))
