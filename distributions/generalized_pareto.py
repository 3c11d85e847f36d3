"""``GeneralizedPareto``: the distribution of what exceeds a high threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..core import exp, isclose, log, log1p, ones_like, rand, where, zeros_like
from ..core.extend import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution, broadcast_all


class GeneralizedPareto(Distribution):
    """Generalized Pareto distribution (``torch.distributions.GeneralizedPareto``).

    The probability of a sample above ``x`` is ``(1 + concentration * z)**(-1 / concentration)`` with
    ``z = (x - loc) / scale``, and ``exp(-z)`` where ``concentration`` is 0.

    Args:
        loc: the smallest number.
        scale: the width, above 0.
        concentration: number; below 0 the largest number is ``loc - scale / concentration``. The three are broadcast to the
            batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)
        # There the first terms of Taylor series are taken: they give the derivatives by the concentration, too.
        self._is_exponential = isclose(self.concentration, zeros_like(self.concentration))

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """Return the constraint to numbers from ``loc`` to the largest one."""
        top = where(self.concentration < 0, self.loc - self.scale / self._nonzero, math.inf)
        return constraints.interval(self.loc, top)

    @property
    def _nonzero(self) -> Tensor:
        return where(self._is_exponential, ones_like(self.concentration), self.concentration)

    @property
    def mean(self) -> Tensor:
        return where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return where(c < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(rand(self._extended(sample_shape), dtype=self.loc.dtype))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of a sample above ``value``."""
        z, c = (self._checked(value) - self.loc) / self.scale, self.concentration
        return -where(self._is_exponential, z - c * z * z / 2, log1p(self._nonzero * z) / self._nonzero)

    def log_prob(self, value: Tensor) -> Tensor:
        z, c = (self._checked(value) - self.loc) / self.scale, self.concentration
        power = 1 / self._nonzero + 1
        # With a power of 0 the density is constant up to the largest number, where the logarithm is infinite.
        logs = where(power + 0 * z == 0, zeros_like(z), power * log1p(self._nonzero * z))
        return -log(self.scale) - where(self._is_exponential, z + c * (z - z * z / 2), logs)

    def entropy(self) -> Tensor:
        return log(self.scale) + self.concentration + 1

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of ``cdf(value)``."""
        return log1p(-exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        standard = -log1p(-value)
        power = (self._nonzero * standard).expm1() / self._nonzero
        near = standard + self.concentration * standard * standard / 2
        return self.loc + self.scale * where(self._is_exponential, near, power)
