"""``RelaxedOneHotCategorical``: probabilities near a one-hot vector, through which gradients flow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..core import as_tensor, log, log_softmax, rand
from ..core.extend import Tensor
from . import constraints
from .odds import Choice, clamped
from .relaxed import Relaxed
from .transforms import ExpTransform


class ExpRelaxedCategorical(Choice):
    """Distribution of the logarithms of a ``RelaxedOneHotCategorical`` vector (Maddison et al. 2017, "The Concrete
    Distribution").

    A sample is ``log_softmax((logits + g) / temperature)`` with Gumbel variables ``g``.

    Args:
        temperature: number above 0; the lower it is, the nearer are samples to those of ``OneHotCategorical``.
        probs: weights of at least 0, of shape ``(*batch_shape, n)``; they are divided by their sums.
        logits: unnormalised logarithms of probabilities, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, it has no dimension, or a weight is negative.
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # a part of it: the exponentials sum to 1
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._take(probs, logits, validate_args)
        self.temperature = as_tensor(temperature)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def _options(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Return the shape of ``probs``: ``(*batch_shape, n)``."""
        return (*self.batch_shape, *self.event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        uniform = clamped(rand(self._extended(sample_shape), dtype=self.logits.dtype))
        return log_softmax((self.logits - log(-log(uniform))) / self.temperature, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        n = self.event_shape[0]
        scores = log_softmax(self.logits - self._checked(value) * self.temperature, -1)
        return scores.sum(-1) + math.lgamma(n) + (n - 1) * log(self.temperature)


class RelaxedOneHotCategorical(Relaxed):
    """Relaxed one-hot distribution: samples are vectors of probabilities (``torch.distributions.RelaxedOneHotCategorical``).

    Args:
        temperature: number above 0; the lower it is, the nearer are samples to one-hot vectors.
        probs: weights of at least 0, of shape ``(*batch_shape, n)``; they are divided by their sums.
        logits: unnormalised logarithms of probabilities, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, it has no dimension, or a weight is negative.
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(
            ExpRelaxedCategorical(temperature, probs, logits, validate_args), ExpTransform(), validate_args
        )
