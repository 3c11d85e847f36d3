"""``Uniform``: numbers between two bounds, all with the same density."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..core import clamp, log, rand
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all


class Uniform(Distribution):
    """Uniform distribution of numbers from ``low`` up to, and without, ``high`` (``torch.distributions.Uniform``).

    Density: ``1 / (high - low)``.

    Args:
        low: the lower bound.
        high: the upper bound; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: ``low`` is not below ``high``.
    """

    arg_constraints: ClassVar = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ValueError(
                f"Uniform: low must be below high, and you gave {self.low.detach()} and {self.high.detach()}"
            )
        self.support = constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return self.mean * float("nan")

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.low + rand(self._extended(sample_shape), dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        inside = ((value >= self.low) & (value < self.high)).to(self.low.dtype)
        return log(inside) - log(self.high - self.low)

    def entropy(self) -> Tensor:
        return log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        return clamp((self._checked(value) - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low
