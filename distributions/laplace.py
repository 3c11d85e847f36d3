"""``Laplace``: the two-sided exponential distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core import exp, log, log1p, rand, sign
from ..core.extend import Tensor
from .location_scale import LocationScale


class Laplace(LocationScale):
    """Laplace distribution (``torch.distributions.Laplace``).

    Density at ``x``: ``exp(-|x - loc| / scale) / (2 * scale)``.

    Args:
        loc: where the density is greatest.
        scale: the width, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale * self.scale

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = rand(self._extended(sample_shape), dtype=self.loc.dtype) - 0.5
        return self.loc - self.scale * sign(u) * log1p(-2 * u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        return -log(2 * self.scale) - (self._checked(value) - self.loc).abs() / self.scale

    def entropy(self) -> Tensor:
        return 1 + log(2 * self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        distance = self._checked(value) - self.loc
        return 0.5 + 0.5 * sign(distance) * (1 - exp(-distance.abs() / self.scale))

    def icdf(self, value: Tensor) -> Tensor:
        centred = value - 0.5
        return self.loc - self.scale * sign(centred) * log1p(-2 * centred.abs())
