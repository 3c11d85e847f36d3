"""``SparseBucket``: one parameter whose gradients are sparse. They are gathered from all ranks, and added up on each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import Tensor
from ...core.extend import Array
from ...core.futures import Future
from ..arrays import describe
from ..group import ProcessGroup
from .buckets import Bucket


class SparseBucket(Bucket):
    """Bucket of one parameter whose gradients are sparse, with other rows on each rank.

    Communication hooks do not get it: they take arrays of equal length on all ranks.
    """

    def begin(self, group: ProcessGroup, gradients: Sequence[Any]) -> Future[Any]:
        """Begin to take the mean over the ranks.

        Args:
            group: the ranks.
            gradients: this rank's, to be added up: sparse tensors, dense tensors or arrays; there may be none.

        Returns:
            A future of the mean, the same on every rank to the bit: a coalesced sparse tensor, or an array if some rank
            has a dense gradient.
        """
        call = group.begin("all_gather of sparse gradients", describe(self.parameters[0]))
        mine = self._sum(gradients)
        work = group.run(lambda: self._mean(group.all_gather(call, mine)), True)
        assert work is not None
        return work

    def _mean(self, everybody: Sequence[Tensor]) -> Any:
        mean = self._sum(everybody) / len(everybody)
        return mean if mean.is_sparse else mean._array

    def _sum(self, gradients: Sequence[Tensor | Array]) -> Any:
        total: Any = self._nothing()
        for gradient in gradients:
            total = total + (gradient if isinstance(gradient, Tensor) else Tensor(gradient))
        return total.coalesce() if total.is_sparse else total

    def _nothing(self) -> Tensor:
        from ...core.sparse import SparseTensor  # the first sparse tensor makes all operations slower

        parameter = self.parameters[0]
        elements = Tensor(np.zeros((0, *parameter.shape[1:]), parameter.dtype))
        return SparseTensor(np.zeros((1, 0), np.int64), elements, parameter.shape, coalesced=True)
