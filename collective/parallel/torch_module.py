"""``TorchDataParallel``: ``DistributedDataParallel`` for modules of PyTorch. Importing this module imports PyTorch.

In a forward the module's parameters are the outputs of one node. Its backward gets the gradients of all of them at once, and
returns their mean. So the mean is what ``.grad`` gets, and in a distributed autograd context the context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ...core import Tensor
from ...core.errors import AutogradError
from ...core.extend import abridged
from ..arrays import check_tensor
from ..collectives import all_reduce
from ..packing import by_dtype, pack, unpack
from ..reduction import ReduceOp
from ..registry import find
from .agreement import check_equal, copy_from

MISSING_NAMED = 5  # parameters without a gradient, in an error


class TorchDataParallel(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """Module of PyTorch that is the same on all ranks of a group. Making a ``DistributedDataParallel`` of a module makes one.

    The backward waits for the gradients of all ranks when the last one has come, and sends them then, by dtype. Only uses of
    the parameters in calls of this object count.

    Args:
        module: the module, on the CPU; its parameters and buffers must be alike on all ranks.
        device_ids, output_device, dim: not used.
        broadcast_buffers: give all ranks the buffers of the first rank before each forward.
        init_sync: check that the modules are alike, and give all ranks the parameters and buffers of the first rank, now.
        process_group: the ranks; ``None`` for the default group.
        bucket_cap_mb: not used.
        find_unused_parameters: allow backwards in which parameters get no gradient, at the cost of one more ``all_reduce``.
        options: further ones of PyTorch, not used.

    Raises:
        CollectiveError: the modules differ from rank to rank, or there is no group.
        TypeError: a parameter or buffer cannot take part in a collective.
        ValueError: no parameter requires grad, or this rank is not in the group.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if (group := find(process_group)) is None:
            raise ValueError(
                "this rank is not in process_group; make DistributedDataParallel on the group's ranks alone"
            )
        self.module = module
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        self._group = group
        self._unsynced = False  # .grad may hold gradients of this rank alone
        self._names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
        if not self._names:
            raise ValueError(f"no parameter of the {type(module).__name__} requires grad; call the module itself")
        named = [*module.named_parameters(), *module.named_buffers()]
        if init_sync:
            check_equal(group, named)
            copy_from(group, _over_memory(named), 0, "parameters")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module. The backward of what it records takes the mean of gradients, except inside ``no_sync``."""
        if self.require_backward_grad_sync and self.broadcast_buffers:
            copy_from(self._group, _over_memory([*self.module.named_buffers()]), 0, "buffers")
        if not torch.is_grad_enabled():
            return self.module(*args, **kwargs)
        if not self.require_backward_grad_sync:
            self._unsynced = True
            return self.module(*args, **kwargs)
        parameters = dict(zip(self._names, Mean.apply(self, *self._trained())))
        return torch.func.functional_call(self.module, parameters, args, kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave gradients of forwards in this block to this rank. The next backward outside takes the mean of all so far."""
        former, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = former

    def mean(self, gradients: Sequence[Any]) -> list[Any]:
        """Return the mean over the ranks of the gradient of each parameter; ``None`` where no rank has one.

        Args:
            gradients: this rank's; ``None`` where it has none.

        Raises:
            AutogradError: a parameter got no gradient, and ``find_unused_parameters`` was not given.
        """
        own = [self._own(parameter, each) for parameter, each in zip(self._trained(), gradients)]
        used = [each is not None for each in own]
        if self.find_unused_parameters:
            flags = Tensor(np.array(used))
            all_reduce(flags, ReduceOp.BOR, self._group)
            used = [bool(flag) for flag in flags.tolist()]
        elif not all(used):
            self._give_up([name for name, got in zip(self._names, used) if not got])
        self._unsynced = False
        found = [
            (torch.zeros_like(parameter) if each is None else each) if wanted else None
            for parameter, each, wanted in zip(self._trained(), own, used)
        ]
        self._reduce([each for each in found if each is not None])
        return found

    def _own(self, parameter: Any, gradient: Any) -> Any:
        """Return a gradient in memory of its own, with what earlier backwards of this rank alone left in ``.grad``."""
        former = parameter.grad if self._unsynced else None
        if former is not None:
            parameter.grad = None
            return former.clone() if gradient is None else former + gradient
        return None if gradient is None else gradient.to_dense().clone(memory_format=torch.contiguous_format)

    def _reduce(self, gradients: list[Any]) -> None:
        for tensors in by_dtype(check_tensor("a gradient", each) for each in gradients):
            row = pack(tensors, tensors[0].dtype)
            call = self._group.begin("all_reduce of gradients", f"{row.dtype}[{row.size}]", row.nbytes)
            self._group.all_reduce(call, row, ReduceOp.AVG)
            unpack(row, tensors)

    def _give_up(self, missing: list[str]) -> None:
        error = AutogradError(
            f"the backward is over, and no gradient came for {abridged([*map(repr, missing)], MISSING_NAMED)}; give "
            "DistributedDataParallel(find_unused_parameters=True) if some parameters do not contribute to the loss"
        )
        self._group.give_up(self._group.begin("all_reduce of gradients", None), error)
        raise error

    def _trained(self) -> list[Any]:
        named = dict(self.module.named_parameters())
        return [named[name] for name in self._names]


class Mean(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Node of all parameters of a module, whose backward takes the mean over the ranks."""

    @staticmethod
    def forward(ctx: Any, module: TorchDataParallel, *parameters: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the parameters.

        Args:
            ctx: the node.
            module: the module on this rank.
            parameters: those that require grad.
        """
        ctx.set_materialize_grads(False)
        ctx.module = module
        return tuple(parameter.view_as(parameter) for parameter in parameters)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the means of the gradients.

        Args:
            ctx, grads: as PyTorch gives them.
        """
        return None, *ctx.module.mean(grads)


def _over_memory(named: Sequence[tuple[str, Any]]) -> list[tuple[str, Tensor]]:
    return [(name, check_tensor(name, tensor)) for name, tensor in named]
