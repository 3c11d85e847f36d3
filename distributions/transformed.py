"""``TransformedDistribution``: samples of another distribution, mapped by transforms."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import no_grad
from ..core.extend import Tensor
from .distribution import Distribution, sum_rightmost
from .transforms import ComposeTransform, Transform


class TransformedDistribution(Distribution):
    """Distribution of ``y = f(x)``, where ``x`` has another distribution (``torch.distributions.TransformedDistribution``).

    Density at ``y``: that of ``x = f^-1(y)``, divided by ``|det df/dx|``.

    Args:
        base_distribution: the distribution of ``x``.
        transforms: ``f``: one transform, or several that are applied one after the other.
        validate_args: see ``Distribution``.
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.base_dist = base_distribution
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        self._transform = ComposeTransform(self.transforms)
        self.has_rsample = base_distribution.has_rsample
        self.support = self._transform.codomain if self.transforms else base_distribution.support
        shape = self._transform.forward_shape((*base_distribution.batch_shape, *base_distribution.event_shape))
        self._events = max(self._transform.event_dim, len(base_distribution.event_shape))
        split = len(shape) - self._events
        super().__init__(shape[:split], shape[split:], validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._transform(self.base_dist.rsample(sample_shape))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._transform(self.base_dist.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        y = self._checked(value)
        x = self._transform._inv_call(y)
        base = sum_rightmost(self.base_dist.log_prob(x), self._events - len(self.base_dist.event_shape))
        return base - sum_rightmost(
            self._transform.log_abs_det_jacobian(x, y), self._events - self._transform.event_dim
        )

    def cdf(self, value: Tensor) -> Tensor:
        below = self.base_dist.cdf(self._transform._inv_call(self._checked(value)))
        return self._oriented(below)

    def icdf(self, value: Tensor) -> Tensor:
        return self._transform(self.base_dist.icdf(self._oriented(value)))

    def _oriented(self, probability: Tensor) -> Tensor:
        # For a decreasing transform the probabilities below and above a value change places.
        return self._transform.sign * (probability - 0.5) + 0.5

    def expand(self, batch_shape: Sequence[int]) -> Distribution:
        inner = (*self.batch_shape, *self.event_shape)[len(self.batch_shape) : len(self.base_dist.batch_shape)]
        return TransformedDistribution(self.base_dist.expand((*batch_shape, *inner)), self.transforms)

    def __repr__(self) -> str:
        names = ", ".join(type(each).__name__ for each in self.transforms)
        return f"TransformedDistribution({self.base_dist}, [{names}])"
