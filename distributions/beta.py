"""``Beta`` and ``Dirichlet``: distributions of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import broadcast_to, clamp, digamma, lgamma, log, log1p, log_softmax, sigmoid
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .gamma import log_gamma_sample


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


class Beta(Distribution):
    """Beta with the parameters ``concentration1`` (alpha) and ``concentration0`` (beta)."""

    arg_constraints: ClassVar = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        # With both below 1 there are two, at the ends: nan.
        one, other = (clamp(a - 1, min=0) for a in (self.concentration1, self.concentration0))
        return one / (one + other)

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total * total * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # One Gamma variable's share of the sum of two, from their logarithms.
        one, other = (
            log_gamma_sample(broadcast_to(a, self._extended(sample_shape)))
            for a in (self.concentration1, self.concentration0)
        )
        info = np.finfo(one.dtype)
        return clamp(sigmoid(one - other), float(info.tiny), 1 - float(info.eps) / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        a, b = self.concentration1, self.concentration0
        return (a - 1) * log(value) + (b - 1) * log1p(-value) - log_beta(a, b)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return log_beta(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)


class Dirichlet(Distribution):
    """Dirichlet's distribution of ``concentration.shape[-1]`` probabilities that sum to 1."""

    arg_constraints: ClassVar = {"concentration": constraints.positive_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if not concentration.ndim:
            raise ValueError("Dirichlet: concentration must have at least one dimension, and you gave a 0-d tensor")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total * total * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        logs = log_gamma_sample(broadcast_to(self.concentration, self._extended(sample_shape)))
        return clamp(log_softmax(logs, -1).exp(), min=float(np.finfo(logs.dtype).tiny))

    def log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        powers = ((a - 1) * log(self._checked(value))).sum(-1)
        return powers + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, total = self.concentration, self.concentration.sum(-1)
        spread = (total - a.shape[-1]) * digamma(total) - ((a - 1) * digamma(a)).sum(-1)
        return lgamma(a).sum(-1) - lgamma(total) + spread
