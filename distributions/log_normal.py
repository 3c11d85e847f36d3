"""``LogNormal``: numbers whose logarithm is normal."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core import exp
from ..core.extend import Tensor
from . import constraints
from .distribution import broadcast_all
from .normal import Normal
from .transformed import TransformedDistribution
from .transforms import ExpTransform


class LogNormal(TransformedDistribution):
    """Log-normal distribution: the exponential of a normal variable (``torch.distributions.LogNormal``).

    Args:
        loc: the mean of the logarithm.
        scale: the standard deviation of the logarithm, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(Normal(self.loc, self.scale, validate_args=False), ExpTransform(), validate_args)

    @property
    def mean(self) -> Tensor:
        return exp(self.loc + self.scale * self.scale / 2)

    @property
    def mode(self) -> Tensor:
        return exp(self.loc - self.scale * self.scale)

    @property
    def variance(self) -> Tensor:
        square = self.scale * self.scale
        return square.expm1() * exp(2 * self.loc + square)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
