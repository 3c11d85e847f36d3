"""``Beta`` and ``Dirichlet``: distributions of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import broadcast_to, clamp, digamma, lgamma, log, log1p, log_softmax, sigmoid
from ..core.extend import Tensor
from . import constraints
from .distribution import broadcast_all
from .exp_family import ExponentialFamily
from .gamma import log_gamma_sample


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """Return the logarithm of the beta function: ``log(gamma(a) * gamma(b) / gamma(a + b))``."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


class Beta(ExponentialFamily):
    """Beta distribution of numbers from 0 to 1 (``torch.distributions.Beta``).

    Density at ``x``: ``x**(alpha - 1) * (1 - x)**(beta - 1) / B(alpha, beta)``.

    Args:
        concentration1: alpha, above 0.
        concentration0: beta, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

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
        # With both concentrations below 1 the density is greatest at both ends: the result is nan.
        one, other = (clamp(a - 1, min=0) for a in (self.concentration1, self.concentration0))
        return one / (one + other)

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total * total * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # The quotient of one gamma variable and the sum of two, from their logarithms.
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

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1 - 1, self.concentration0 - 1

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        one, other = natural_params
        return log_beta(one + 1, other + 1)


class Dirichlet(ExponentialFamily):
    """Dirichlet distribution of vectors of probabilities, which sum to 1 (``torch.distributions.Dirichlet``).

    Density at ``x``: ``gamma(sum a) / prod gamma(a) * prod x**(a - 1)`` with ``a`` for ``concentration``.

    Args:
        concentration: numbers above 0, of shape ``(*batch_shape, n)``, for vectors of ``n`` elements.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: ``concentration`` has no dimension, or is outside its constraint.
    """

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
        weighted = (total - a.shape[-1]) * digamma(total) - ((a - 1) * digamma(a)).sum(-1)
        return lgamma(a).sum(-1) - lgamma(total) + weighted

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration - 1,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        a = natural_params[0] + 1
        return lgamma(a).sum(-1) - lgamma(a.sum(-1))
