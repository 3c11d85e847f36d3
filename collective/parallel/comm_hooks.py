"""Communication hooks for ``DistributedDataParallel.register_comm_hook``: smaller messages for less exact gradients.

Names as in ``torch.distributed.algorithms.ddp_comm_hooks``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import Tensor
from ...core.futures import Future
from ..arrays import flat
from ..reduction import ReduceOp
from ..registry import find
from .buckets import GradBucket
from .power_sgd import PowerSGDState as PowerSGDState
from .power_sgd import powerSGD_hook as powerSGD_hook
from .reducer import CommHook
from .reducer import all_reduce_hook as allreduce_hook

__all__ = [
    "PostLocalSGDState",
    "PowerSGDState",
    "allreduce_hook",
    "bf16_compress_hook",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
    "post_localSGD_hook",
    "powerSGD_hook",
]


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Take the mean of gradients that travel as float16, in half of the bytes of float32.

    Args:
        process_group: the ranks; ``None`` for the default group.
        bucket: the gradients.
    """
    return _compress(Tensor.half, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Take the mean of gradients that travel as bfloat16; needs the package ``ml_dtypes``.

    Args:
        process_group: the ranks; ``None`` for the default group.
        bucket: the gradients.
    """
    return _compress(Tensor.bfloat16, process_group, bucket)


def fp16_compress_wrapper(hook: CommHook) -> CommHook:
    """Return a hook that gives another one its gradients as float16, and turns the result back."""

    def compressed(state: Any, bucket: GradBucket) -> Future[Any]:
        dtype = bucket.buffer().dtype
        bucket.set_buffer(bucket.buffer().half())
        return hook(state, bucket).then(lambda future: future.value().to(dtype))

    return compressed


def _compress(convert: Callable[[Tensor], Tensor], process_group: Any, bucket: GradBucket) -> Future[Any]:
    group = find(process_group)
    assert group is not None  # DistributedDataParallel is made on members alone
    buffer = bucket.buffer()
    row = flat(convert(buffer / group.size()))  # divided first: a sum of many could be too large for float16
    call = group.begin("all_reduce", f"{row.dtype}[{row.size}], SUM", row.nbytes)

    def body() -> Tensor:
        group.all_reduce(call, row, ReduceOp.SUM)
        return Tensor(row.astype(buffer._array.dtype))

    work = group.run(body, True)
    assert work is not None
    return work


class PostLocalSGDState:
    """State of ``post_localSGD_hook`` on one rank.

    Args:
        process_group: the ranks whose mean the gradients are at first; ``None`` for the default group.
        subgroup: those whose mean they are later; ``None`` for this rank alone.
        start_localSGD_iter: steps before that.
        post_local_gradient_allreduce: take the mean over ``subgroup``; otherwise gradients stay as they are.
    """

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,  # noqa: N803 - PyTorch's name
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Any]:  # noqa: N802 - PyTorch's name
    """Take the mean of gradients over all ranks at first, and later over few, for ``PostLocalSGDOptimizer``.

    Args:
        state: a ``PostLocalSGDState``, of this module alone.
        bucket: the gradients.
    """
    if bucket.is_last():
        state.iter += 1
    if state.iter - bucket.is_last() < state.start_localSGD_iter:
        return allreduce_hook(state.process_group, bucket)
    if state.post_local_gradient_allreduce and state.subgroup is not None:
        return allreduce_hook(state.subgroup, bucket)
    kept: Future[Any] = Future()
    kept.set_result(bucket.buffer())
    return kept
