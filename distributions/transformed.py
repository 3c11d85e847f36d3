"""``TransformedDistribution``, and those that are simple transforms of another: ``Gumbel``, ``HalfNormal``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..core import exp, log, no_grad, rand, where
from ..core import finfo as floating_info
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all, sum_rightmost
from .normal import Normal
from .transforms import ComposeTransform, Transform

_EULER = 0.5772156649015329


class TransformedDistribution(Distribution):
    """What a transform makes of samples of another distribution.

    Args:
        base_distribution: where samples come from.
        transforms: one, or several, which are done one after the other.
        validate_args: whether values are checked.
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.base_dist = base_distribution
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        self._whole = ComposeTransform(self.transforms)
        self.has_rsample = base_distribution.has_rsample
        self.support = self._whole.codomain if self.transforms else base_distribution.support
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        self._events = max(self._whole.event_dim, len(base_distribution.event_shape))
        split = len(shape) - self._events
        super().__init__(shape[:split], shape[split:], validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._whole(self.base_dist.rsample(sample_shape))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._whole(self.base_dist.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        y = self._checked(value)
        x = self._whole._inv_call(y)
        base = sum_rightmost(self.base_dist.log_prob(x), self._events - len(self.base_dist.event_shape))
        return base - sum_rightmost(self._whole.log_abs_det_jacobian(x, y), self._events - self._whole.event_dim)

    def cdf(self, value: Tensor) -> Tensor:
        below = self.base_dist.cdf(self._whole._inv_call(self._checked(value)))
        return self._turned(below)

    def icdf(self, value: Tensor) -> Tensor:
        return self._whole(self.base_dist.icdf(self._turned(value)))

    def _turned(self, probability: Tensor) -> Tensor:
        # Where the transform falls, what is below becomes what is above.
        return self._whole.sign * (probability - 0.5) + 0.5

    def expand(self, batch_shape: Sequence[int]) -> Distribution:
        inner = (*self.batch_shape, *self.event_shape)[len(self.batch_shape) : len(self.base_dist.batch_shape)]
        return TransformedDistribution(self.base_dist.expand((*batch_shape, *inner)), self.transforms)

    def __repr__(self) -> str:
        names = ", ".join(type(each).__name__ for each in self.transforms)
        return f"TransformedDistribution({self.base_dist}, [{names}])"


class HalfNormal(Distribution):
    """The size of a normal variable with mean 0 and standard deviation ``scale``."""

    arg_constraints: ClassVar = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def _whole(self) -> Normal:
        return Normal(0.0 * self.scale, self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._whole.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return where(value >= 0, self._whole.log_prob(value) + math.log(2), -math.inf)

    def entropy(self) -> Tensor:
        return self._whole.entropy() - math.log(2)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self._whole.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self._whole.icdf((value + 1) / 2)


class Gumbel(Distribution):
    """The largest of many: Gumbel's distribution around ``loc``, of width ``scale``."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * _EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * (math.pi**2 / 6)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        smallest = floating_info(self.loc.dtype).tiny
        return self.icdf(rand(self._extended(sample_shape), dtype=self.loc.dtype).clamp(min=smallest))

    def log_prob(self, value: Tensor) -> Tensor:
        standard = (self.loc - self._checked(value)) / self.scale
        return standard - exp(standard) - log(self.scale)

    def entropy(self) -> Tensor:
        return log(self.scale) + (1 + _EULER)

    def cdf(self, value: Tensor) -> Tensor:
        return exp(-exp((self.loc - self._checked(value)) / self.scale))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * log(-log(value))
