"""``Bernoulli``, the result of one trial, and ``Geometric``, the number of failures before the first success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..core import arange, log, log1p, no_grad, rand, xlogy
from ..core.extend import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .odds import Odds, softplus


class Bernoulli(Odds, ExponentialFamily):
    """Bernoulli distribution: 1 with probability ``probs``, else 0 (``torch.distributions.Bernoulli``).

    Probability of ``x``: ``probs**x * (1 - probs)**(1 - x)``.

    Args:
        probs: probabilities of a success, any shape: the batch shape.
        logits: ``log(probs / (1 - probs))``, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, or it is outside its constraint.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        probs = self.probs
        return (probs >= 0.5).to(probs.dtype).masked_fill(probs == 0.5, float("nan"))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            probs = self.probs
            return (rand(self._extended(sample_shape), dtype=probs.dtype) < probs).to(probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = self.logits, self._checked(value)
        return value * logits - softplus(logits)

    def entropy(self) -> Tensor:
        return softplus(self.logits) - self.logits * self.probs

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self.probs.dtype).reshape(2, *(1,) * len(self.batch_shape))
        return values.expand(2, *self.batch_shape) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return softplus(natural_params[0])


class Geometric(Odds):
    """Geometric distribution: the number of failures, 0, 1, ..., before the first success (``torch.distributions.Geometric``).

    Probability of ``k``: ``(1 - probs)**k * probs``.

    Args:
        probs: probabilities of a success, above 0, any shape: the batch shape.
        logits: ``log(probs / (1 - probs))``, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, or it is outside its constraint.
    """

    arg_constraints: ClassVar = {"probs": constraints.half_open_unit, "logits": constraints.real}
    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return self.probs * 0

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            probs = self.probs
            uniform = rand(self._extended(sample_shape), dtype=probs.dtype)
            uniform = uniform.clamp(min=float(np.finfo(probs.dtype).tiny))
            failures = log(uniform).numpy() / log1p(-probs).numpy()
            return Tensor(np.floor(failures))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return xlogy(value, 1 - self.probs) + log(self.probs)

    def entropy(self) -> Tensor:
        p = self.probs
        return -(xlogy(1 - p, 1 - p) + xlogy(p, p)) / p
