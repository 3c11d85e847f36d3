"""``LogisticNormal``: probabilities that are made of normal variables."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.extend import Tensor
from . import constraints
from .distribution import broadcast_all
from .normal import Normal
from .transformed import TransformedDistribution
from .transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Distribution of ``n + 1`` probabilities, the ``StickBreakingTransform`` of ``n`` normal variables
    (``torch.distributions.LogisticNormal``).

    Args:
        loc: the means of the normal variables, of shape ``(*batch_shape, n)``; a number is one variable.
        scale: their standard deviations, above 0; the two are broadcast.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"loc": constraints.real_vector, "scale": constraints.positive_vector}
    support = constraints.simplex
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = (each if each.ndim else each.unsqueeze(0) for each in broadcast_all(loc, scale))
        super().__init__(Normal(self.loc, self.scale, validate_args=False), StickBreakingTransform(), validate_args)
