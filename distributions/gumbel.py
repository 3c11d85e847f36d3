"""``Gumbel``: the distribution of the largest of many samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core import exp, log, rand
from ..core import finfo as floating_info
from ..core.extend import Tensor
from .location_scale import LocationScale


class Gumbel(LocationScale):
    """Gumbel distribution: the limit of the largest of many samples (``torch.distributions.Gumbel``).

    Density at ``x``: ``exp(-z - exp(-z)) / scale`` with ``z = (x - loc) / scale``.

    Args:
        loc: where the density is greatest.
        scale: the width, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * np.euler_gamma

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
        standard = -self._standard(value)
        return standard - exp(standard) - log(self.scale)

    def entropy(self) -> Tensor:
        return log(self.scale) + (1 + np.euler_gamma)

    def cdf(self, value: Tensor) -> Tensor:
        return exp(-exp(-self._standard(value)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * log(-log(value))
