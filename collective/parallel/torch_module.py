"""``TorchDataParallel``: ``DistributedDataParallel`` for modules of PyTorch. Importing this module imports PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ...core import Tensor
from ...core.futures import Future
from ..arrays import check_tensor
from ..registry import find
from .agreement import check_equal, copy_from
from .buckets import DEFAULT_MIB, GradBucket, bucket_bytes, make_buckets
from .reducer import Reducer, all_reduce_hook
from .torch_reduction import TorchReduction, array_of, over
from .uneven_inputs import UnevenInputs


class TorchDataParallel(torch.nn.Module, UnevenInputs):  # type: ignore[misc, unused-ignore]
    """Module of PyTorch that is the same on all ranks of a group. Making a ``DistributedDataParallel`` of a module makes one.

    In the backward, gradients become their mean in buckets, each as soon as its last gradient has come, while the backward goes
    on. Each call has buckets of its own. Only uses of the parameters in calls of this object count.

    Args:
        module: the module, on the CPU; its parameters and buffers must be alike on all ranks.
        device_ids, output_device, dim: not used.
        broadcast_buffers: give all ranks the buffers of the first rank before each forward.
        init_sync: check that the modules are alike, and give all ranks the parameters and buffers of the first rank, now.
        process_group: the ranks; ``None`` for the default group.
        bucket_cap_mb: MiB of gradients that travel together; ``None`` is 25. The first bucket has 1 MiB.
        find_unused_parameters: allow backwards in which parameters get no gradient, at the cost of one more ``all_reduce``.
        options: further ones of PyTorch, not used.

    Raises:
        CollectiveError: the modules differ from rank to rank, or there is no group.
        TypeError: a parameter or buffer cannot take part in a collective.
        ValueError: no parameter requires grad, this rank is not in the group, or ``bucket_cap_mb`` is not above 0.
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
        self._hook: tuple[Any, Callable[[Any, GradBucket], Future[Any]]] = group, all_reduce_hook
        self._names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
        if not self._names:
            raise ValueError(f"no parameter of the {type(module).__name__} requires grad; call the module itself")
        self._memory = [check_tensor(name, each) for name, each in zip(self._names, self.trained())]
        limit = bucket_bytes(DEFAULT_MIB if bucket_cap_mb is None else bucket_cap_mb)
        self._buckets = make_buckets(self._memory, limit, range(len(self._memory)))
        named = [*module.named_parameters(), *module.named_buffers()]
        if init_sync:
            check_equal(group, named)
            self.copy_from(0)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module. The backward of what it records takes the mean of gradients, except inside ``no_sync``."""
        self.begin_step(torch.is_grad_enabled() and self.require_backward_grad_sync)
        if self.require_backward_grad_sync:
            self.copy_buffers()
        if not torch.is_grad_enabled():
            return self.module(*args, **kwargs)
        if not self.require_backward_grad_sync:
            self._unsynced = True
            return self.module(*args, **kwargs)
        return torch.func.functional_call(self.module, self._through_nodes(), args, kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave gradients of forwards in this block to this rank. The next backward outside takes the mean of all so far."""
        former, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = former

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Future[Any]]) -> None:
        """Replace how a bucket's gradients become their mean (``DistributedDataParallel.register_comm_hook``).

        Args:
            state: given to each call.
            hook: function of the state and a ``GradBucket``, whose tensors are ones of Telegrad; returns a future of the mean.

        Raises:
            TypeError: it cannot be called.
        """
        if not callable(hook):
            raise TypeError(f"hook must be a function of a state and a bucket; you gave {type(hook).__name__}")
        self._hook = state, hook

    def trained(self) -> list[Any]:
        """Return the parameters that required grad when this object was made."""
        named = dict(self.module.named_parameters())
        return [named[name] for name in self._names]

    def _through_nodes(self) -> dict[str, Any]:
        reduction = TorchReduction(self, self._reducer())
        return dict(zip(self._names, reduction.connect(self.trained(), self._buckets)))

    def _reducer(self) -> Reducer:
        reducer = Reducer(self._names, self._memory, self._buckets, self._group, self.find_unused_parameters)
        reducer.hook_state, reducer.hook = self._hook
        reducer.scale = self._scale
        return reducer

    # -- uneven inputs

    def copy_from(self, source: int) -> None:
        """Give all ranks the parameters and buffers of one.

        Args:
            source: its index in the group.
        """
        named = [*self.module.named_parameters(), *self.module.named_buffers()]
        copy_from(self._group, _over_memory(named), source, "parameters")

    def copy_buffers(self) -> None:
        """Give all ranks the buffers of the first rank that has an input, if ``broadcast_buffers`` was given."""
        if self.broadcast_buffers:
            copy_from(self._group, _over_memory([*self.module.named_buffers()]), self.first_active(), "buffers")

    def shadow_backward(self) -> None:
        """Take part in a backward of the others, with zeros; gradients become the mean."""
        for mean, parameter in zip(self._reducer().shadow_means(), self.trained()):
            if mean is not None:
                parameter.grad = over(mean, parameter)

    # -- gradients of this rank alone

    def lend_gradients(self) -> None:
        """Show the reducer the gradients that earlier backwards of this rank alone left in ``.grad``."""
        for memory, parameter in zip(self._memory, self.trained()):
            former = parameter.grad if self._unsynced else None
            memory.grad = None if former is None else Tensor(array_of(former))

    def drop_gradients(self) -> None:
        """Drop those that are in the mean."""
        for memory, parameter in zip(self._memory, self.trained()):
            if self._unsynced and memory.grad is None:
                parameter.grad = None
            memory.grad = None
        self._unsynced = False

    @property
    def unsynced(self) -> bool:
        """True if ``.grad`` may hold gradients of this rank alone."""
        return self._unsynced


def _over_memory(named: Sequence[tuple[str, Any]]) -> list[tuple[str, Tensor]]:
    return [(name, check_tensor(name, tensor)) for name, tensor in named]
