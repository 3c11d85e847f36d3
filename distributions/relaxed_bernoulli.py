"""``RelaxedBernoulli``: numbers from 0 to 1 near those of a Bernoulli variable, through which gradients flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..core import as_tensor, log, log1p, rand
from ..core.extend import Tensor
from . import constraints
from .odds import Odds, clamped, softplus
from .relaxed import Relaxed
from .transforms import SigmoidTransform


class LogitRelaxedBernoulli(Odds):
    """Distribution of the logits of a ``RelaxedBernoulli`` variable (Maddison et al. 2017, "The Concrete Distribution").

    A sample is ``(logit(u) + logits) / temperature`` with a uniform ``u``.

    Args:
        temperature: number above 0; the lower it is, the nearer are samples to those of ``Bernoulli``.
        probs: probabilities of a success, any shape: the batch shape.
        logits: ``log(probs / (1 - probs))``, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, or it is outside its constraint.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self.temperature = as_tensor(temperature)

    def _options(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        logits = self.logits
        uniform = clamped(rand(self._extended(sample_shape), dtype=logits.dtype))
        return (log(uniform) - log1p(-uniform) + logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        apart = self.logits - self._checked(value) * self.temperature
        return log(self.temperature) + apart - 2 * softplus(apart)


class RelaxedBernoulli(Relaxed):
    """Relaxed Bernoulli distribution: samples are numbers between 0 and 1 (``torch.distributions.RelaxedBernoulli``).

    Args:
        temperature: number above 0; the lower it is, the nearer are samples to 0 and 1.
        probs: probabilities of a success, any shape: the batch shape.
        logits: ``log(probs / (1 - probs))``, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, or it is outside its constraint.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)
