"""``DistributedDataParallel``: a module on every rank, each with its own part of the batch, and gradients of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...core.extend import check_device, is_grad_enabled
from ...core.futures import Future
from ...nn import Embedding, EmbeddingBag, Module, UninitializedParameter
from ...nn.extend import is_module_of_torch
from ..registry import find
from .agreement import check_equal, copy_from
from .buckets import DEFAULT_MIB, Bucket, GradBucket, bucket_bytes, make_buckets
from .reducer import Reducer
from .sparse_bucket import SparseBucket
from .uneven_inputs import UnevenInputs


class DistributedDataParallel(Module, UnevenInputs):
    """Module that is the same on all ranks of a group (``torch.nn.parallel.DistributedDataParallel``).

    Each rank calls it with its own part of a batch. In the backward, gradients become their mean over the ranks: in buckets,
    each as soon as its last gradient has come, while the backward goes on. So a loss that is a mean over the batch gives
    every rank the gradient of the whole batch, and equal optimizers keep the ranks equal. In a distributed autograd context
    the mean is what the context gets, as if the module were on one worker.

    All uses of the parameters after a call count, up to the end of the backward. Hooks of parameters see the mean.

    The gradient of an embedding table with ``sparse=True`` is the mean as well: a coalesced sparse tensor, of the rows that any
    rank looked up. It is gathered from all ranks, and communication hooks do not get it.

    Args:
        module: the module; its parameters and buffers must be the same on all ranks, in shape, dtype and order. One of PyTorch
            becomes a module of PyTorch (``TorchDataParallel``).
        device_ids: ``None``: modules run on the CPU.
        output_device: not used.
        dim: not used.
        broadcast_buffers: give all ranks the buffers of the first rank before each forward.
        init_sync: check that the modules are alike, and give all ranks the parameters and buffers of the first rank, now.
        process_group: the ranks; ``None`` for the default group.
        bucket_cap_mb: MiB of gradients that travel together; ``None`` is 25. The first bucket has 1 MiB.
        find_unused_parameters: allow backwards in which parameters get no gradient. Their ``.grad`` is left alone if that is
            so on all ranks, at the cost of one more small ``all_reduce``.
        check_reduction: not used.
        gradient_as_bucket_view: not used: gradients are views of the bucket until somebody reads ``.grad``.
        static_graph: not used: nothing is searched in the graph.

    Attributes:
        module: the module.

    Raises:
        CollectiveError: the modules differ from rank to rank, or there is no group.
        ValueError: nothing in the module requires grad, or this rank is not in the group.
    """

    def __new__(cls, module: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Return an object of this class, or of ``TorchDataParallel`` for a module of PyTorch.

        Args:
            module, args, kwargs: as for the constructor; a copy is made without them.
        """
        if not is_module_of_torch(module):
            return super().__new__(cls)
        from .torch_module import TorchDataParallel  # it imports PyTorch, which is there if a module of it is

        return TorchDataParallel(module, *args, **kwargs)

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        for device in device_ids or ():
            check_device(device)
        self.module = module
        self.require_backward_grad_sync = True
        self.broadcast_buffers = broadcast_buffers
        self.process_group = self._group = _group_of(process_group)
        named = _trained(module)
        self._trained = [parameter for _, parameter in named]
        buckets = _buckets(module, self._trained, DEFAULT_MIB if bucket_cap_mb is None else bucket_cap_mb)
        names = [name for name, _ in named]
        self._reducer = Reducer(names, self._trained, buckets, self._group, find_unused_parameters)
        if init_sync:
            check_equal(self._group, [*module.named_parameters(), *module.named_buffers()])
            self.copy_from(0)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module. What it records reduces gradients, except inside ``no_sync``.

        Raises:
            ValueError: parameters were added, or began to require grad, after this object was made.
        """
        reduces = is_grad_enabled() and self.require_backward_grad_sync
        self.begin_step(reduces)
        self._reducer.scale = self._scale
        if self.require_backward_grad_sync:
            self.copy_buffers()
        if reduces:
            self._check_parameters()
            self._reducer.arm()
        elif is_grad_enabled():
            self._reducer.disarm()
            self._reducer.unsynced = True
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave gradients of forwards in this block to this rank. The next backward outside takes the mean of all so far.

        That is for gradients in ``.grad``: a distributed autograd context would keep them as they are.
        """
        former, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = former

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Future[Any]]) -> None:
        """Replace how a bucket's gradients become their mean.

        Args:
            state: given to each call; often the group, or ``PowerSGDState``.
            hook: called as ``hook(state, bucket)`` on every rank, bucket after bucket; it returns a future of a tensor with the
                mean of the bucket's gradients. ``comm_hooks`` has some.

        Raises:
            TypeError: it cannot be called.
        """
        if not callable(hook):
            raise TypeError(f"hook must be a function of a state and a bucket; you gave {type(hook).__name__}")
        self._reducer.hook_state, self._reducer.hook = state, hook

    # -- steps

    def _check_parameters(self) -> None:
        known = {id(parameter) for parameter in self._trained}
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad and id(parameter) not in known:
                raise ValueError(
                    f"parameter {name!r} was added, or began to require grad, after DistributedDataParallel was made, and its "
                    "gradient would not be reduced; make a new DistributedDataParallel of the module"
                )

    # -- uneven inputs

    def copy_from(self, source: int) -> None:
        """Give all ranks the parameters and buffers of one.

        Args:
            source: its index in the group.
        """
        copy_from(self._group, [*self.module.named_parameters(), *self.module.named_buffers()], source, "parameters")

    def copy_buffers(self) -> None:
        """Give all ranks the buffers of the first rank that has an input, if ``broadcast_buffers`` was given."""
        if self.broadcast_buffers:
            copy_from(self._group, [*self.module.named_buffers()], self.first_active(), "buffers")

    def shadow_backward(self) -> None:
        """Take part in a backward of the others, with zeros; gradients become the mean."""
        self._reducer.scale = self._scale
        self._reducer.shadow()


def _group_of(process_group: Any) -> Any:
    group = find(process_group)
    if group is None:
        raise ValueError("this rank is not in process_group; make DistributedDataParallel on the group's ranks alone")
    return group


def _trained(module: Module) -> list[tuple[str, Any]]:
    if not isinstance(module, Module):
        raise TypeError(f"module must be an nn.Module; you gave {type(module).__name__}")
    named = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    if lazy := [name for name, parameter in named if isinstance(parameter, UninitializedParameter)]:
        raise ValueError(f"parameter {lazy[0]!r} has no shape yet; run a forward of the module before, on all ranks")
    if not named:
        raise ValueError(
            f"no parameter of the {type(module).__name__} requires grad, so there is nothing to reduce; call the module itself"
        )
    return named


def _buckets(module: Module, parameters: list[Any], mib: float) -> list[Bucket]:
    """Return buckets of dense gradients of some MiB, and after these one for each parameter with sparse gradients."""
    tables = [each for each in module.modules() if isinstance(each, (Embedding, EmbeddingBag)) and each.sparse]
    sparse = {id(table.weight) for table in tables}
    buckets = make_buckets(
        parameters, bucket_bytes(mib), [i for i, each in enumerate(parameters) if id(each) not in sparse]
    )
    for index, each in enumerate(parameters):
        if id(each) in sparse:
            buckets.append(SparseBucket(len(buckets), [index], [each]))
    return buckets
