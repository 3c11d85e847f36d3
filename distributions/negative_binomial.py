"""``NegativeBinomial``: the number of successes before a number of failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..core import clamp, exp, lgamma, no_grad, sigmoid, where, zeros_like
from ..core.extend import Tensor
from . import constraints
from .gamma import Gamma
from .odds import Odds, softplus
from .poisson import Poisson


class NegativeBinomial(Odds):
    """Negative binomial distribution: the number of successes before the failure of number ``total_count``
    (``torch.distributions.NegativeBinomial``).

    Probability of ``k``: ``gamma(k + r) / (k! gamma(r)) * probs**k * (1 - probs)**r`` with ``r`` for ``total_count``.

    Args:
        total_count: number of failures, at least 0; it need not be whole.
        probs: probabilities of a success, below 1; both are broadcast to the batch shape.
        logits: ``log(probs / (1 - probs))``, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, or a parameter is outside its constraint.
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative,
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args, total_count=total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return clamp(((self.total_count - 1) * exp(self.logits)).floor(), min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / sigmoid(-self.logits)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # A Poisson variable whose rate is a Gamma variable.
        with no_grad():
            rate = Gamma(self.total_count, exp(-self.logits), validate_args=False).sample(sample_shape)
            return Poisson(rate, validate_args=False).sample()

    def log_prob(self, value: Tensor) -> Tensor:
        value, r = self._checked(value), self.total_count
        powers = -r * softplus(self.logits) - value * softplus(-self.logits)
        ways = lgamma(r + value) - lgamma(1 + value) - lgamma(r)
        return powers + where(r + value == 0, zeros_like(ways), ways)
