"""``Normal``, and ``LogNormal``, whose logarithm is normal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..core import erf, erfinv, exp, log, randn
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all


class Normal(Distribution):
    """Normal with mean ``loc`` and standard deviation ``scale``."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + randn(self._extended(sample_shape), dtype=self.loc.dtype) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        standard = (self._checked(value) - self.loc) / self.scale
        return -(standard * standard) / 2 - log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + erf((self._checked(value) - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * erfinv(2 * value - 1) * math.sqrt(2)


class LogNormal(Normal):
    """The exponential of a normal variable with mean ``loc`` and standard deviation ``scale``."""

    support = constraints.positive

    @property
    def mean(self) -> Tensor:
        return exp(self.loc + self.scale * self.scale / 2)

    @property
    def mode(self) -> Tensor:
        return exp(self.loc - self.scale * self.scale)

    @property
    def variance(self) -> Tensor:
        square = self.scale * self.scale
        return (exp(square) - 1) * exp(2 * self.loc + square)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return exp(super().rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        logarithm = log(self._checked(value))
        return Normal(self.loc, self.scale, validate_args=False).log_prob(logarithm) - logarithm

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc

    def cdf(self, value: Tensor) -> Tensor:
        return Normal(self.loc, self.scale, validate_args=False).cdf(log(self._checked(value)))

    def icdf(self, value: Tensor) -> Tensor:
        return exp(super().icdf(value))
