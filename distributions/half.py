"""``HalfNormal`` and ``HalfCauchy``: absolute values of variables that are symmetric around 0."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core import where, zeros_like
from ..core.extend import Tensor
from . import constraints
from .distribution import broadcast_all
from .heavy_tailed import Cauchy
from .normal import Normal
from .transformed import TransformedDistribution
from .transforms import AbsTransform


class Half(TransformedDistribution):
    """Distribution of the absolute value of a variable around 0. ``_whole`` is the class of that variable's distribution."""

    arg_constraints: ClassVar = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _whole: ClassVar[type[Normal] | type[Cauchy]]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        whole = self._whole(zeros_like(self.scale), self.scale, validate_args=False)
        super().__init__(whole, AbsTransform(), validate_args)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)


class HalfNormal(Half):
    """Half-normal distribution: the absolute value of a normal variable of mean 0 (``torch.distributions.HalfNormal``).

    Args:
        scale: the standard deviation of that variable, above 0; its shape is the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    _whole = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * (1 - 2 / math.pi)


class HalfCauchy(Half):
    """Half-Cauchy distribution: the absolute value of a Cauchy variable around 0 (``torch.distributions.HalfCauchy``).

    Args:
        scale: the width of that variable, above 0; its shape is the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    _whole = Cauchy

    @property
    def mean(self) -> Tensor:
        return self.scale * math.inf

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
