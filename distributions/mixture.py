"""``MixtureSameFamily``: one of several distributions of a class, chosen at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..core import log_softmax, logsumexp, no_grad, take_along_dim
from ..core.extend import Tensor
from . import constraints
from .categorical import Categorical
from .constraints import Constraint
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """Mixture: a sample of a component that is chosen at random (``torch.distributions.MixtureSameFamily``).

    Density at ``x``: the sum over the components of their probability times their density at ``x``.

    Args:
        mixture_distribution: chooses the component: of batch shape ``(...)``, over as many outcomes as there are components.
        component_distribution: the components, along its last batch dimension: of batch shape ``(..., components)``.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: there are not as many outcomes as components.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        batch = component_distribution.batch_shape
        weights = mixture_distribution.probs
        if not batch or weights.shape[-1] != batch[-1]:
            raise ValueError(
                f"MixtureSameFamily needs a probability for each of the components, the last of the batch dimensions {batch}, "
                f"and there are {weights.shape[-1]}"
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        self.support = constraints.MixtureSameFamilyConstraint(component_distribution.support)
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def _events(self) -> int:
        return len(self.event_shape)

    @property
    def _weights(self) -> Tensor:
        weights = self.mixture_distribution.probs
        return weights.reshape(*weights.shape, *(1,) * self._events)

    @property
    def _axis(self) -> int:
        return -1 - self._events

    @property
    def mean(self) -> Tensor:
        return (self._weights * self.component_distribution.mean).sum(self._axis)

    @property
    def variance(self) -> Tensor:
        inside = (self._weights * self.component_distribution.variance).sum(self._axis)
        apart = self.component_distribution.mean - self.mean.unsqueeze(self._axis)
        return inside + (self._weights * apart * apart).sum(self._axis)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn = self.component_distribution.sample(sample_shape)
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            chosen = chosen.reshape(*chosen.shape, 1, *(1,) * self._events)
            return take_along_dim(drawn, chosen, drawn.ndim + self._axis).squeeze(self._axis)

    def log_prob(self, value: Tensor) -> Tensor:
        each = self.component_distribution.log_prob(self._checked(value).unsqueeze(self._axis))
        return logsumexp(each + log_softmax(self.mixture_distribution.logits, -1), -1)

    def cdf(self, value: Tensor) -> Tensor:
        below = self.component_distribution.cdf(self._checked(value).unsqueeze(self._axis))
        return (below * self.mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution}, {self.component_distribution})"
