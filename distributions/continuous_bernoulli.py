"""``ContinuousBernoulli``: numbers from 0 to 1 whose density is exponential."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..core import as_tensor, clamp, log, log1p, no_grad, rand, sigmoid, where
from ..core.extend import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .odds import Odds, clamped, softplus


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Continuous Bernoulli distribution of numbers from 0 to 1 (``torch.distributions.ContinuousBernoulli``).

    Density at ``x``: ``C * probs**x * (1 - probs)**(1 - x)``, where ``C`` makes its integral 1 (Loaiza-Ganem and Cunningham
    2019). ``C``, the mean and the variance are quotients of zeros at ``probs`` of 0.5, and Taylor series near it.

    Args:
        probs: numbers from 0 to 1, any shape: the batch shape.
        logits: ``log(probs / (1 - probs))``, instead of ``probs``.
        lims: the bounds of ``probs`` between which the series are used.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, or it is outside its constraint.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    probs: Tensor

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self._lims = lims
        if "probs" in vars(self):
            self.probs = clamped(self.probs)

    def _options(self) -> dict[str, Any]:
        return {"lims": self._lims}

    def _near_half(
        self, probs: Tensor, exact: Callable[[Tensor], Tensor], series: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return ``series(probs - 0.5)`` near a half, and ``exact(probs)`` elsewhere."""
        low, high = self._lims
        near = (probs > low) & (probs <= high)
        # Replaced by a number where exact() is finite, so that its gradient is finite too.
        return where(near, series(probs - 0.5), exact(where(near, as_tensor(low, probs.dtype), probs)))

    def _log_norm(self, probs: Tensor) -> Tensor:
        return self._near_half(
            probs,
            lambda p: log((log1p(-p) - log(p)).abs()) - log((1 - 2 * p).abs()),
            lambda x: math.log(2) + (4 / 3 + 104 / 45 * x * x) * x * x,
        )

    @property
    def mean(self) -> Tensor:
        return self._near_half(
            self.probs,
            lambda p: p / (2 * p - 1) + 1 / (log1p(-p) - log(p)),
            lambda x: 0.5 + (1 / 3 + 16 / 45 * x * x) * x,
        )

    @property
    def variance(self) -> Tensor:
        return self._near_half(
            self.probs,
            lambda p: p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (log1p(-p) - log(p)) ** 2,
            lambda x: 1 / 12 - (1 / 15 - 128 / 945 * x * x) * x * x,
        )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(rand(self._extended(sample_shape), dtype=self.probs.dtype))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        logits = self.logits
        return self._checked(value) * logits - softplus(logits) + self._log_norm(self.probs)

    def entropy(self) -> Tensor:
        probs = self.probs
        return -self.mean * self.logits - log1p(-probs) - self._log_norm(probs)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        inside = self._near_half(
            self.probs + 0 * value,
            lambda p: (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1),
            lambda x: value - 2 * x * value * (1 - value),
        )
        return clamp(inside, 0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return self._near_half(
            self.probs + 0 * value,
            lambda p: (log1p(-p + value * (2 * p - 1)) - log1p(-p)) / (log(p) - log1p(-p)),
            lambda x: value + 2 * x * value * (1 - value),
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (logits,) = natural_params
        return softplus(logits) - self._log_norm(sigmoid(logits))
