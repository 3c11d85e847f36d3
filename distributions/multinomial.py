"""``Multinomial``: the counts of the outcomes of a number of draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import lgamma, stack, xlogy
from ..core.extend import Tensor
from . import constraints
from .categorical import Categorical, draw
from .odds import Choice


class Multinomial(Choice):
    """Multinomial distribution: counts of ``n`` outcomes in ``total_count`` draws (``torch.distributions.Multinomial``).

    Probability of counts ``k``: ``total_count! / prod k! * prod probs**k``.

    Args:
        total_count: number of draws, at least 0.
        probs: weights of at least 0, of shape ``(*batch_shape, n)``; they are divided by their sums.
        logits: unnormalised logarithms of probabilities, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: ``total_count`` is not an integer of at least 0, not exactly one of ``probs`` and ``logits`` is given, it
            has no dimension, or a weight is negative.
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int) or total_count < 0:
            raise ValueError(f"Multinomial: total_count must be an integer of at least 0, and you gave {total_count!r}")
        self.total_count = total_count
        shape = self._take(probs, logits, validate_args)
        self.support = constraints.multinomial(total_count)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def _options(self) -> dict[str, Any]:
        return {"total_count": self.total_count}

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = (self.total_count, *sample_shape, *self.batch_shape)
        numbers = draw(self.probs, shape)
        counts = (numbers[..., None] == np.arange(self.event_shape[0])).sum(0)
        return Tensor(counts.astype(self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value).to(self.probs.dtype)
        ways = lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1)
        return ways + xlogy(value, self.probs).sum(-1)

    def entropy(self) -> Tensor:
        """Return the entropy in nats, of shape ``batch_shape``: a sum over the possible counts of each outcome."""
        n = self.total_count
        single = Categorical(probs=self.probs, validate_args=False).entropy()
        counts = [self.probs * 0 + count for count in range(n + 1)]
        terms = [_binomial(n, count, self.probs) * lgamma(number + 1) for count, number in enumerate(counts)]
        of_factorials = stack(terms).sum(0).sum(-1)
        return n * single - lgamma(self.probs.sum(-1) * 0 + (n + 1)) + of_factorials


def _binomial(n: int, k: int, p: Tensor) -> Tensor:
    """Return the probability of ``k`` successes in ``n`` trials."""
    one = p * 0
    ways = lgamma(one + (n + 1)) - lgamma(one + (k + 1)) - lgamma(one + (n - k + 1))
    return (ways + xlogy(one + k, p) + xlogy(one + (n - k), 1 - p)).exp()
