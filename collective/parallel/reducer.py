"""``Reducer``: gradients of all ranks become their mean on the way to the parameters' ``.grad``.

While a forward is recorded, the gradient of each parameter is diverted through three nodes:

    the module's operations -> Arrival (one a parameter) -> Filled (one a bucket) -> Reduced -> AccumulateGrad

The engine's dependency counts do the rest. ``Filled`` runs when the last gradient of its bucket has come, and starts the
bucket's ``all_reduce`` in the background; ``Reduced`` runs when nothing else is left, and waits for all of them. So unused
parameters need no search in the graph, and a distributed backward, which collects gradients in its context, gets means as
well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.errors import AutogradError
from ...base.words import abridged
from ...core import Tensor
from ...core.extend import AccumulateGrad, Array, Node, divert
from ...core.futures import Future
from ..collectives import all_reduce
from ..group import ProcessGroup
from ..reduction import ReduceOp
from .buckets import Bucket, GradBucket
from .sparse_bucket import SparseBucket

MISSING_SHOWN = 5  # parameters without a gradient, in an error

CommHook = Callable[[Any, GradBucket], Future[Any]]


class GradientArrival(Node):
    """The node where the gradient of one parameter arrives."""

    __slots__ = ("_index", "_reducer")

    def __init__(self, reducer: Reducer, index: int, filled: Node) -> None:
        super().__init__(((filled, 0),))
        self._reducer = reducer
        self._index = index

    def apply(self, grads: tuple[Any, ...]) -> Sequence[None]:
        """Put the gradient into its bucket. What follows waits for this node, and gets no gradient of it."""
        if grads[0] is not None:
            self._reducer.put(self._index, grads[0])
        return (None,)


class Filled(Node):
    """The node that runs when all gradients of a bucket have arrived."""

    __slots__ = ("_bucket", "_reducer")

    def __init__(self, reducer: Reducer, bucket: int, reduced: Node) -> None:
        super().__init__(((reduced, 0),))
        self._reducer = reducer
        self._bucket = bucket

    def apply(self, grads: tuple[Any, ...]) -> Sequence[None]:
        """Start the bucket's communication, in the order of the buckets."""
        self._reducer.filled(self._bucket)
        return (None,)


class Reduced(Node):
    """The node that hands the mean gradients on, when all buckets have been reduced."""

    __slots__ = ("_reducer",)

    def __init__(self, reducer: Reducer, leaves: Sequence[Node]) -> None:
        super().__init__(tuple((leaf, 0) for leaf in leaves))
        self._reducer = reducer

    def apply(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Return the mean gradient of each parameter."""
        return self._reducer.finish()


class Reduction:
    """State of one backward pass.

    Args:
        parameters: their number.
        buckets: their number.
        own: whether this rank adds gradients to those of the others.
    """

    def __init__(self, parameters: int, buckets: int, own: bool) -> None:
        self.own = own
        self.rows: list[Any] = [None] * buckets  # the gradients of each, in an array; of a SparseBucket, its gradient
        self.arrived = [False] * parameters
        self.filled = [False] * buckets
        self.started: list[Future[Any]] = []  # communication of the buckets, in their order


class Reducer:
    """Mean of gradients over the ranks of a group, during a backward pass.

    Args:
        names: of the parameters, for errors.
        parameters: those that require grad, in the same order on all ranks.
        buckets: of these parameters, those with sparse gradients last.
        group: the ranks.
        find_unused: allow parameters without a gradient; whether any rank has one is found by one more ``all_reduce``.
    """

    def __init__(
        self,
        names: Sequence[str],
        parameters: Sequence[Tensor],
        buckets: Sequence[Bucket],
        group: ProcessGroup,
        find_unused: bool,
    ) -> None:
        self.hook: CommHook = all_reduce_hook
        self.hook_state: Any = group
        self.scale = 1.0  # of the mean: above 1 when ranks have joined early, and only the others count
        self.unsynced = False  # .grad may hold gradients of this rank alone
        self._names = names
        self._parameters = parameters
        self._buckets = buckets
        self._group = group
        self._find_unused = find_unused
        self._last_dense = max((b.index for b in buckets if not isinstance(b, SparseBucket)), default=None)
        self._leaves = [AccumulateGrad(parameter) for parameter in parameters]
        reduced = Reduced(self, self._leaves)
        self._place = {i: (b.index, place) for b in buckets for place, i in enumerate(b.members)}
        filled = [Filled(self, bucket.index, reduced) for bucket in buckets]
        self._arrivals = [GradientArrival(self, i, filled[self._place[i][0]]) for i in range(len(parameters))]
        self._current = self._new()

    def _new(self, own: bool = True) -> Reduction:
        return Reduction(len(self._parameters), len(self._buckets), own)

    # -- forward

    def arm(self) -> None:
        """Reduce the gradients of what is recorded from now on. What a failed backward has left is dropped."""
        self._current = self._new()
        for parameter, node in zip(self._parameters, self._arrivals, strict=True):
            divert(parameter, node)

    def disarm(self) -> None:
        """Leave the gradients of what is recorded from now on as they are."""
        for parameter, node in zip(self._parameters, self._leaves, strict=True):
            divert(parameter, node)

    # -- backward

    def put(self, index: int, grad: Any) -> None:
        """Take the gradient of a parameter.

        Raises:
            AutogradError: it came already in this pass: two passes run at the same time.
            TypeError: it is sparse, and the parameter is not the table of an embedding with ``sparse=True``.
        """
        bucket = self._buckets[self._place[index][0]]
        if isinstance(grad, Tensor) and not isinstance(bucket, SparseBucket):
            raise TypeError(
                f"parameter {self._names[index]!r} got a sparse gradient, which DistributedDataParallel reduces only for the "
                "weight of an nn.Embedding or nn.EmbeddingBag with sparse=True; use one of these, or call to_dense() on the "
                "gradient"
            )
        current = self._current
        if current.arrived[index]:
            raise AutogradError(
                f"parameter {self._names[index]!r} got two gradients before the first was reduced: run one backward of a "
                "DistributedDataParallel module at a time"
            )
        current.arrived[index] = True
        if isinstance(bucket, SparseBucket):
            current.rows[bucket.index] = grad
        else:
            np.copyto(self._part(current, index), grad, casting="same_kind")

    def filled(self, bucket: int) -> None:
        """Start the communication of a bucket, or leave it to the last before it that is still to come."""
        current = self._current
        # What lacks a gradient that must come is not sent: finish() tells.
        current.filled[bucket] = self._find_unused or all(current.arrived[i] for i in self._buckets[bucket].members)
        while len(current.started) < len(self._buckets) and current.filled[len(current.started)]:
            self._start(current)

    def finish(self) -> list[Any]:
        """Return the mean gradients, in the order of the parameters: arrays and sparse tensors.

        ``None`` stands where no rank has a gradient.

        Raises:
            AutogradError: a parameter got no gradient, and ``find_unused`` was not given.
            CollectiveError: the ranks do not fit together, or one did not come in time.
            WorkerLostError: a rank is lost.
        """
        current = self._current
        if not (self._find_unused or all(current.arrived)):
            error = self._missing([name for name, got in zip(self._names, current.arrived, strict=True) if not got])
            self._give_up(len(current.started), error)
            raise error
        means = self._complete(current)
        if self.unsynced:
            for parameter, mean in zip(self._parameters, means, strict=True):
                parameter.grad = None if mean is not None else parameter.grad  # it is in the mean
        self.unsynced = False
        self.disarm()
        self._current = self._new()
        return means

    def shadow(self) -> None:
        """Take part in a backward of the others, with zeros; ``.grad`` becomes their mean."""
        for parameter, mean in zip(self._parameters, self.shadow_means(), strict=True):
            if mean is not None:
                parameter.grad = mean if isinstance(mean, Tensor) else Tensor(mean)

    def shadow_means(self) -> list[Any]:
        """Take part in a backward of the others, with zeros, and return the means, as ``finish`` does."""
        return self._complete(self._new(own=False))

    def _complete(self, current: Reduction) -> list[Any]:
        while len(current.started) < len(self._buckets):
            self._start(current)
        anywhere = self._used_anywhere(current) if self._find_unused else [True] * len(self._parameters)
        means: list[Any] = [None] * len(self._parameters)
        for bucket, future in zip(self._buckets, current.started, strict=True):
            for index, part in zip(bucket.members, self._parts(bucket, future.wait()), strict=True):
                means[index] = part if anywhere[index] else None
        return means

    def _parts(self, bucket: Bucket, value: Any) -> Sequence[Any]:
        return [value * self.scale] if isinstance(bucket, SparseBucket) else bucket.parts(self._result(bucket, value))

    def _give_up(self, first: int, error: Exception) -> None:
        """Let the buckets that were not started fail on all ranks: others may have started them, and wait."""
        for bucket in self._buckets[first:]:
            self._group.give_up(self._group.begin(f"all_reduce of gradients, bucket {bucket.index}", None), error)

    def _start(self, current: Reduction) -> None:
        """Start the communication of the next bucket."""
        bucket = self._buckets[len(current.started)]
        begin = self._begin_sparse if isinstance(bucket, SparseBucket) else self._begin_dense
        current.started.append(begin(current, bucket))

    def _begin_sparse(self, current: Reduction, bucket: Any) -> Future[Any]:
        given = (current.rows[bucket.index], self._former(current, bucket.members[0]))
        return bucket.begin(self._group, [gradient for gradient in given if gradient is not None])

    def _begin_dense(self, current: Reduction, bucket: Bucket) -> Future[Any]:
        """Give a bucket to the communication hook. What has not arrived is zero."""
        for index in bucket.members:
            former = self._former(current, index)
            if not current.arrived[index]:
                self._part(current, index)[...] = 0 if former is None else former._array
            elif former is not None:
                self._part(current, index)[...] += former._array
        row = current.rows[bucket.index]
        return self.hook(self.hook_state, GradBucket(bucket, row, bucket.index == self._last_dense))

    def _former(self, current: Reduction, index: int) -> Tensor | None:
        """Return the gradient that earlier backwards left in ``.grad``, if it is this rank's alone."""
        return self._parameters[index].grad if current.own and self.unsynced else None

    def _part(self, current: Reduction, index: int) -> Array:
        number, place = self._place[index]
        bucket = self._buckets[number]
        row = current.rows[number]
        if row is None:
            row = current.rows[number] = np.empty(bucket.size(), bucket.dtype)
        return bucket.part(row, place)

    def _used_anywhere(self, current: Reduction) -> list[bool]:
        mine = [got or self._former(current, index) is not None for index, got in enumerate(current.arrived)]
        flags = Tensor(np.array(mine))
        all_reduce(flags, ReduceOp.BOR, self._group)
        return [bool(flag) for flag in flags.tolist()]

    def _result(self, bucket: Bucket, value: Any) -> Array:
        value = value[0] if isinstance(value, (list, tuple)) and value else value  # PyTorch's hooks may give a list
        if not isinstance(value, Tensor) or value.numel() != bucket.size():
            raise TypeError(
                f"the communication hook must return a future of the tensor of the bucket's gradients; it gave {value!r}"
            )
        row: Array = value.numpy(force=True).reshape(-1).astype(bucket.dtype, copy=False)
        if self.scale != 1.0:
            row *= self.scale
        return row

    def _missing(self, names: Sequence[str]) -> AutogradError:
        missing = abridged([*map(repr, names)], MISSING_SHOWN)
        return AutogradError(
            f"the backward is over, and no gradient came for {missing}: all parameters must contribute to the loss. Give "
            "DistributedDataParallel(find_unused_parameters=True) if some do not, or requires_grad=False to those that never do"
        )


def all_reduce_hook(group: Any, bucket: GradBucket) -> Future[Any]:
    """Communication hook that takes the mean of the gradients: what happens without a hook."""
    work = all_reduce(bucket.buffer(), ReduceOp.AVG, group, async_op=True)
    assert work is not None
    return work
