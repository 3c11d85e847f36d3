"""``TransformedDistribution``: samples of another distribution, mapped by transforms."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import no_grad
from ..core.extend import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution, sum_rightmost
from .independent import Independent
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
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        self._transform = ComposeTransform(self.transforms)
        self.base_dist = base = _fitted(base_distribution, self._transform)
        self.has_rsample = base.has_rsample
        if getattr(type(self), "support", None) is None:
            self.support = self._support()
        shape = self._transform.forward_shape((*base.batch_shape, *base.event_shape))
        apart = len(base.event_shape) - self._transform.domain.event_dim
        split = len(shape) - self._transform.codomain.event_dim - apart
        super().__init__(shape[:split], shape[split:], validate_args)

    def _support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        last = self._transform.codomain
        dims = len(self.base_dist.event_shape) - self._transform.domain.event_dim
        return constraints.independent(last, dims) if dims else last

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._transform(self.base_dist.rsample(sample_shape))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._transform(self.base_dist.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        y = self._checked(value)
        x = self._transform._inv_call(y)
        apart = len(self.base_dist.event_shape) - self._transform.domain.event_dim
        return self.base_dist.log_prob(x) - sum_rightmost(self._transform.log_abs_det_jacobian(x, y), apart)

    def cdf(self, value: Tensor) -> Tensor:
        below = self.base_dist.cdf(self._transform._inv_call(self._checked(value)))
        return self._oriented(below)

    def icdf(self, value: Tensor) -> Tensor:
        return self._transform(self.base_dist.icdf(self._oriented(value)))

    def _oriented(self, probability: Tensor) -> Tensor:
        # For a decreasing transform the probabilities below and above a value change places.
        return self._transform.sign * (probability - 0.5) + 0.5

    def expand(self, batch_shape: Sequence[int]) -> Distribution:
        if self.arg_constraints:
            return super().expand(batch_shape)  # a class with parameters of its own
        shape = self._transform.inverse_shape((*batch_shape, *self.event_shape))
        inner = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return TransformedDistribution(inner, self.transforms, validate_args=False)

    def __repr__(self) -> str:
        if self.arg_constraints:
            return super().__repr__()
        names = ", ".join(type(each).__name__ for each in self.transforms)
        return f"TransformedDistribution({self.base_dist}, [{names}])"


def _fitted(base: Distribution, transform: Transform) -> Distribution:
    """Return ``base`` with a batch that broadcasts with the transform's parameters, and events that it maps as a whole."""
    shape = (*base.batch_shape, *base.event_shape)
    dims = transform.domain.event_dim
    if len(shape) < dims:
        raise ValueError(
            f"the transform maps events of {dims} dimensions, and the base distribution has the shape {shape}"
        )
    wide = tuple(transform.inverse_shape(transform.forward_shape(shape)))
    if wide != shape:
        base = base.expand(wide[: len(wide) - len(base.event_shape)])
    more = dims - len(base.event_shape)
    return Independent(base, more) if more > 0 else base
