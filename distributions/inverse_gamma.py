"""``InverseGamma``: the reciprocal of a Gamma variable."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core import digamma, lgamma, log, where
from ..core.extend import Tensor
from . import constraints
from .distribution import broadcast_all
from .gamma import Gamma
from .transformed import TransformedDistribution
from .transforms import PowerTransform


class InverseGamma(TransformedDistribution):
    """Inverse Gamma distribution: the reciprocal of a Gamma variable (``torch.distributions.InverseGamma``).

    Density at ``x``: ``b**a / gamma(a) * x**(-a - 1) * exp(-b / x)``.

    Args:
        concentration: the shape parameter ``a``, above 0.
        rate: ``b``, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        gamma = Gamma(self.concentration, self.rate, validate_args=False)
        super().__init__(gamma, PowerTransform(-1.0), validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + log(self.rate) + lgamma(a) - (1 + a) * digamma(a)
