"""``Poisson``: the number of events in a unit of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import default_generator, exp, lgamma, log, xlogy
from ..core.extend import Tensor
from . import constraints
from .distribution import broadcast_all
from .exp_family import ExponentialFamily


class Poisson(ExponentialFamily):
    """Poisson distribution: the number of events that happen ``rate`` times on average (``torch.distributions.Poisson``).

    Probability of ``k``: ``rate**k * exp(-rate) / k!``.

    Args:
        rate: the mean, at least 0; its shape is the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return Tensor(np.floor(self.rate.numpy(force=True)))

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        rate = self.rate.numpy(force=True)
        drawn = default_generator.draw("poisson", rate, self._extended(sample_shape))
        return Tensor(np.asarray(drawn).astype(rate.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value).to(self.rate.dtype)
        return xlogy(value, self.rate) - self.rate - lgamma(value + 1)

    def entropy(self) -> Tensor:
        raise self._without("entropy()")  # the mean of log(k!) has no formula

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (log(self.rate),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return exp(natural_params[0])
