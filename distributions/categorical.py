"""``Categorical``: one of ``n`` outcomes, as its number or (``OneHotCategorical``) as a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import arange, argmax, broadcast_to, default_generator, gather
from ..core.extend import Array, Tensor
from . import constraints
from .odds import Choice


def draw(probs: Tensor, shape: tuple[int, ...]) -> Array:
    """Return random numbers of outcomes.

    Args:
        probs: probabilities, of shape ``(*batch_shape, n)``.
        shape: of the result; its last dimensions are ``batch_shape``.
    """
    # The cumulative sums below a uniform number are counted: outcomes of probability 0 are never drawn.
    sums = np.cumsum(probs.numpy(force=True), -1, dtype=np.float64)
    uniform = default_generator.draw("random", shape) * sums[..., -1]
    return np.asarray((uniform[..., None] >= sums).sum(-1))


class Categorical(Choice):
    """Categorical distribution of the numbers 0 to ``n - 1`` of ``n`` outcomes (``torch.distributions.Categorical``).

    Args:
        probs: weights of at least 0, of shape ``(*batch_shape, n)``; they are divided by their sums.
        logits: unnormalised logarithms of probabilities, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, it has no dimension, or a weight is negative.
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        shape = self._take(probs, logits, validate_args)
        self._num_events = shape[-1]
        self.support = constraints.integer_interval(0, shape[-1] - 1)
        super().__init__(shape[:-1], validate_args=validate_args)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Return the shape of ``probs``: ``(*batch_shape, n)``."""
        return (*self.batch_shape, self._num_events)

    @property
    def mean(self) -> Tensor:
        return self.probs.detach().sum(-1) * float("nan")

    @property
    def variance(self) -> Tensor:
        return self.mean

    @property
    def mode(self) -> Tensor:
        return argmax(self.probs, -1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return Tensor(draw(self.probs, self._extended(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        shape = np.broadcast_shapes(value.shape, self.batch_shape)
        chosen = broadcast_to(value.long(), shape).unsqueeze(-1)
        return gather(broadcast_to(self.logits, (*shape, self._num_events)), -1, chosen).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=float(np.finfo(self.logits.dtype).min))
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events).reshape(-1, *(1,) * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


class OneHotCategorical(Choice):
    """Categorical distribution of one-hot vectors: 1 at the outcome, else 0 (``torch.distributions.OneHotCategorical``).

    Args:
        probs: weights of at least 0, of shape ``(*batch_shape, n)``; they are divided by their sums.
        logits: unnormalised logarithms of probabilities, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, it has no dimension, or a weight is negative.
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    support = constraints.one_hot

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        shape = self._take(probs, logits, validate_args)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(argmax(self.probs, -1).numpy())

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, numbers: Array) -> Tensor:
        return Tensor(np.eye(self.event_shape[0], dtype=self.probs.dtype)[numbers])

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(draw(self.probs, (*sample_shape, *self.batch_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical().log_prob(argmax(self._checked(value), -1))

    def entropy(self) -> Tensor:
        return self._categorical().entropy()

    def _categorical(self) -> Categorical:
        given: dict[str, Any] = self._given()
        return Categorical(**given, validate_args=False)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = self._one_hot(np.arange(n)).reshape(n, *(1,) * len(self.batch_shape), n)
        return values.expand(n, *self.batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot distribution whose samples pass gradients on as if they were ``probs``
    (``torch.distributions.OneHotCategoricalStraightThrough``; Bengio et al. 2013, the straight-through estimator).

    Args:
        probs: weights of at least 0, of shape ``(*batch_shape, n)``; they are divided by their sums.
        logits: unnormalised logarithms of probabilities, instead of ``probs``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: not exactly one of ``probs`` and ``logits`` is given, it has no dimension, or a weight is negative.
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())
