"""``Kumaraswamy``: a distribution like Beta whose quantiles have a formula."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..core import digamma, exp, lgamma, log, log1p, ones_like, where, zeros_like
from ..core.extend import Tensor
from . import constraints
from .distribution import broadcast_all
from .transformed import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy distribution of numbers from 0 to 1 (``torch.distributions.Kumaraswamy``).

    The probability of a sample above ``x`` is ``(1 - x**a)**b``.

    Args:
        concentration1: ``a``, above 0.
        concentration0: ``b``, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = a, b = broadcast_all(concentration1, concentration0)
        uniform = Uniform(zeros_like(a), ones_like(a), validate_args=False)
        parts = [PowerTransform(1 / b), AffineTransform(1.0, -1.0), PowerTransform(1 / a)]
        super().__init__(uniform, parts, validate_args)

    def _moment(self, order: int) -> Tensor:
        a, b = 1 + order / self.concentration1, self.concentration0
        return exp(log(b) + lgamma(a) + lgamma(b) - lgamma(a + b))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return where((a < 1) | (b < 1), math.nan, exp(log1p(-b) / b - log1p(-a * b)))

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1) ** 2

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * (digamma(b + 1) + np.euler_gamma) - log(a) - log(b)
