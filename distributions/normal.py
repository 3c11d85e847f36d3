"""``Normal``: the normal distribution of single numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core import erf, erfinv, log, randn
from ..core.extend import Tensor
from .exp_family import ExponentialFamily
from .location_scale import LocationScale


class Normal(LocationScale, ExponentialFamily):
    """Normal distribution (``torch.distributions.Normal``).

    Density at ``x``: ``exp(-z**2 / 2) / (scale * sqrt(2 pi))`` with ``z = (x - loc) / scale``.

    Args:
        loc: the mean.
        scale: the standard deviation, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    @property
    def mean(self) -> Tensor:
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
        standard = self._standard(value)
        return -(standard * standard) / 2 - log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + erf(self._standard(value) / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * erfinv(2 * value - 1) * math.sqrt(2)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        precision = self.scale**-2
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        slope, curve = natural_params
        return -slope * slope / (4 * curve) + 0.5 * log(-math.pi / curve)
