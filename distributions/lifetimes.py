"""``Weibull`` and ``Pareto``: powers of exponential variables, and exponentials of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import clamp, exp, lgamma, log, log1p, rand
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all


class Weibull(Distribution):
    """Weibull distribution (``torch.distributions.Weibull``).

    The probability of a sample above ``x`` is ``exp(-(x / scale)**concentration)``.

    Args:
        scale: number above 0.
        concentration: number above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _moment(self, order: int) -> Tensor:
        return self.scale**order * exp(lgamma(1 + order / self.concentration))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** (1 / self.concentration)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1) ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(
            clamp(rand(self._extended(sample_shape), dtype=self.scale.dtype), np.finfo(self.scale.dtype).tiny)
        )

    def log_prob(self, value: Tensor) -> Tensor:
        ratio, k = self._checked(value) / self.scale, self.concentration
        return log(k / self.scale) + (k - 1) * log(ratio) - ratio**k

    def entropy(self) -> Tensor:
        return np.euler_gamma * (1 - 1 / self.concentration) + log(self.scale / self.concentration) + 1

    def cdf(self, value: Tensor) -> Tensor:
        return -(-((self._checked(value) / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-log1p(-value)) ** (1 / self.concentration)


class Pareto(Distribution):
    """Pareto distribution of numbers of at least ``scale`` (``torch.distributions.Pareto``).

    The probability of a sample above ``x`` is ``(scale / x)**alpha``.

    Args:
        scale: the smallest number, above 0.
        alpha: the exponent, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"scale": constraints.positive, "alpha": constraints.positive}
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)
        self.support = constraints.interval(self.scale, np.inf)

    @property
    def mean(self) -> Tensor:
        alpha = clamp(self.alpha, min=1)  # infinite below
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = clamp(self.alpha, min=2)  # infinite below
        return self.scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(rand(self._extended(sample_shape), dtype=self.scale.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        return log(self.alpha) + self.alpha * log(self.scale) - (self.alpha + 1) * log(self._checked(value))

    def entropy(self) -> Tensor:
        return log(self.scale / self.alpha) + 1 + 1 / self.alpha

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - (self.scale / self._checked(value)) ** self.alpha

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (1 - value) ** (-1 / self.alpha)
