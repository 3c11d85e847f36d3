"""``Binomial``: the number of successes in a number of trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import arange, clamp, default_generator, lgamma, xlogy
from ..core.extend import Tensor
from . import constraints
from .constraints import Constraint
from .odds import Odds, softplus


class Binomial(Odds):
    """Binomial distribution: the number of successes in ``total_count`` trials (``torch.distributions.Binomial``).

    Probability of ``k``: ``n! / (k! (n - k)!) * probs**k * (1 - probs)**(n - k)`` with ``n`` for ``total_count``.

    Args:
        total_count: number of trials, whole numbers of at least 0.
        probs: probabilities of a success; both are broadcast to the batch shape.
        logits: ``log(probs / (1 - probs))``, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, or a parameter is outside its constraint.
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    total_count: Tensor

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args, total_count=total_count)

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """Return the constraint to whole numbers from 0 to ``total_count``."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return clamp(((self.total_count + 1) * self.probs).floor(), max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs.numpy(force=True)
        trials = self.total_count.numpy(force=True).astype(np.int64)
        drawn = default_generator.draw("binomial", trials, probs, self._extended(sample_shape))
        return Tensor(np.asarray(drawn).astype(probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        n, value = self.total_count, self._checked(value)
        ways = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        if "probs" in vars(self):  # exact where a probability is 0 or 1
            return ways + xlogy(value, self.probs) + xlogy(n - value, 1 - self.probs)
        return ways + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> Tensor:
        """Return the entropy in nats, of shape ``batch_shape``: a sum over the possible counts.

        Raises:
            NotImplementedError: ``total_count`` is not the same number everywhere.
        """
        logs = self.log_prob(self.enumerate_support(False))
        return -xlogy(logs.exp(), logs.exp()).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max())
        if int(self.total_count.min()) != most:
            raise NotImplementedError(
                "the values of Binomial are listed only if total_count is the same number everywhere"
            )
        values = arange(most + 1, dtype=self.total_count.dtype).reshape(-1, *(1,) * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values
