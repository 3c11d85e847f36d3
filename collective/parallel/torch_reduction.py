"""Reduction of the gradients of a module of PyTorch, for each forward. Importing this module imports PyTorch.

In a forward the module's parameters pass through two nodes:

    the module's operations -> TorchFilled (one a bucket) -> TorchReduced -> the parameters

``TorchFilled`` starts the bucket's ``all_reduce`` in the background when the last gradient of its parameters has come.
``TorchReduced`` waits for all of them and returns the means, which ``.grad`` gets, and in a distributed autograd context the
context. PyTorch's engine takes of the nodes that are ready the one with the largest number. ``TorchFilled`` has a larger one
than operations, and ``TorchReduced``, which is made before the module's operations, a smaller one, so it runs when all of them
are over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...core.extend import Array
from ..arrays import check_tensor
from .buckets import Bucket
from .reducer import Reducer

FIRST = 1 << 62  # number of a node that PyTorch's engine takes before those of operations, which are numbered from 0


class TorchReduction:
    """Reduction of the gradients of one forward: what its two nodes share.

    Args:
        module: the ``TorchDataParallel`` on this rank.
        reducer: the state of its buckets.
    """

    def __init__(self, module: Any, reducer: Reducer) -> None:
        self.module = module
        self.reducer = reducer
        self._members: dict[int, tuple[int, ...]] = {}
        self._lent = False

    def connect(self, parameters: Sequence[Any], buckets: Sequence[Bucket]) -> list[Any]:
        """Return the parameters as outputs of the nodes.

        Args:
            parameters: those that require grad.
            buckets: theirs.
        """
        given = TorchReduced.apply(self, *parameters)
        found: list[Any] = [None] * len(parameters)
        for bucket in buckets:
            self._members[bucket.index] = bucket.members
            outputs = TorchFilled.apply(self, bucket.index, *[given[place] for place in bucket.members])
            if (set_number := getattr(outputs[0].grad_fn, "_set_sequence_nr", None)) is not None:
                set_number(FIRST)  # an early PyTorch without it has no overlap
            for place, output in zip(bucket.members, outputs):
                found[place] = output
        return found

    def fill(self, bucket: Any, gradients: Sequence[Any]) -> None:
        """Take the gradients of a bucket, and start its communication if those before it have started.

        Args:
            bucket: its number.
            gradients: of its parameters; ``None`` where there is none.
        """
        self._lend()
        for place, gradient in zip(self._members[bucket], gradients):
            if gradient is not None:
                self.reducer.put(place, array_of(gradient))
        self.reducer.filled(bucket)

    def finish(self) -> list[Any]:
        """Return the means of the gradients; ``None`` where no rank has one."""
        self._lend()
        means = self.reducer.finish()
        self._lent = False
        self.module.drop_gradients()
        return [None if mean is None else over(mean, each) for mean, each in zip(means, self.module.trained())]

    def _lend(self) -> None:
        if not self._lent:
            self._lent = True
            self.reducer.unsynced = self.module.unsynced
            self.module.lend_gradients()


class TorchReduced(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Node of all parameters of a module, whose backward returns the means over the ranks."""

    @staticmethod
    def forward(ctx: Any, reduction: TorchReduction, *parameters: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the parameters.

        Args:
            ctx: the node.
            reduction: of this forward.
            parameters: those that require grad.
        """
        ctx.set_materialize_grads(False)
        ctx.reduction = reduction
        return tuple(parameter.view_as(parameter) for parameter in parameters)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the means of the gradients.

        Args:
            ctx, grads: as PyTorch gives them.
        """
        return None, *ctx.reduction.finish()


class TorchFilled(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Node of the parameters of a bucket, whose backward starts the bucket's communication."""

    @staticmethod
    def forward(
        ctx: Any, reduction: TorchReduction, bucket: int, *parameters: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Return the parameters.

        Args:
            ctx: the node.
            reduction: of this forward.
            bucket: number of the bucket.
            parameters: its parameters.
        """
        ctx.set_materialize_grads(False)
        ctx.reduction, ctx.bucket = reduction, bucket
        return tuple(parameter.view_as(parameter) for parameter in parameters)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Give the gradients to the reduction, and none to the next node, which waits for this one.

        Args:
            ctx, grads: as PyTorch gives them.
        """
        ctx.reduction.fill(ctx.bucket, grads)
        return (None,) * (2 + len(grads))


def array_of(gradient: torch.Tensor) -> Array:
    """Return the elements of a gradient."""
    plain = gradient.detach().to_dense().contiguous().resolve_conj().resolve_neg()
    return check_tensor("a gradient", plain)._array


def over(array: Array, like: torch.Tensor) -> torch.Tensor:
    """Return a tensor over the memory of an array.

    Args:
        array: gradients of a parameter.
        like: the parameter.
    """
    if like.dtype is torch.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(like.dtype)
    return torch.from_numpy(array)
