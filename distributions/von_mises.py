"""``VonMises``: the normal distribution's counterpart on the circle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import cos, default_generator, log, special
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all


class VonMises(Distribution):
    """Von Mises distribution of angles in radians, from -pi to pi (``torch.distributions.VonMises``).

    Density at ``x``: ``exp(concentration * cos(x - loc)) / (2 pi I0(concentration))``. Values may be any angles; mean and
    variance are the circular ones.

    Args:
        loc: the mean angle.
        concentration: number above 0, like the reciprocal of a variance; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        loc, concentration = (each.numpy(force=True).astype(np.float64) for each in (self.loc, self.concentration))
        drawn = default_generator.draw("vonmises", loc, concentration, self._extended(sample_shape))
        return Tensor(np.asarray(drawn).astype(self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        k = self.concentration
        # I0(k) = i0e(k) exp(k), whose exponential would overflow.
        return k * (cos(self._checked(value) - self.loc) - 1) - math.log(2 * math.pi) - log(special.i0e(k))
