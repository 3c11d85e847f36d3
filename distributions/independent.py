"""``Independent``: dimensions of a batch as dimensions of its events."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, sum_rightmost


class Independent(Distribution):
    """Distribution whose last batch dimensions are taken as dimensions of its events (``torch.distributions.Independent``).

    ``log_prob`` and ``entropy`` are summed over these dimensions.

    Args:
        base_distribution: a distribution of at least ``reinterpreted_batch_ndims`` batch dimensions.
        reinterpreted_batch_ndims: number of batch dimensions that become dimensions of an event.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: ``base_distribution`` has fewer batch dimensions.
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch = base_distribution.batch_shape
        if not 0 <= reinterpreted_batch_ndims <= len(batch):
            raise ValueError(
                f"Independent: reinterpreted_batch_ndims must be from 0 to {len(batch)}, the number of batch dimensions, and "
                f"you gave {reinterpreted_batch_ndims}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        support = base_distribution.support
        self.support = (
            constraints.independent(support, reinterpreted_batch_ndims) if reinterpreted_batch_ndims else support
        )
        self.has_rsample = base_distribution.has_rsample
        split = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:split], batch[split:] + base_distribution.event_shape, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def expand(self, batch_shape: Sequence[int]) -> Distribution:
        inner = self.event_shape[: self.reinterpreted_batch_ndims]
        return Independent(self.base_dist.expand((*batch_shape, *inner)), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
