"""``ZeroRedundancyOptimizer``: each rank keeps the state of a part of the parameters (S. Rajbhandari et al., "ZeRO", 2019)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...base.errors import CollectiveError
from ...core import Tensor, enable_grad
from ...optim import Optimizer
from ..joining import Join, Joinable, JoinHook
from ..packing import by_dtype, pack, unpack
from ..registry import find, member


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Optimizer whose state is spread over ranks that have equal parameters and gradients (``ZeroRedundancyOptimizer``).

    Each parameter belongs to one rank, so that all have about as many elements. A step updates a rank's own parameters, and
    then gives them to all, in one message for each dtype.

    Args:
        params: as for an optimizer, the same on all ranks.
        optimizer_class: of the optimizer of a rank's own parameters, such as ``optim.Adam``.
        process_group: the ranks; ``None`` for the default group.
        parameters_as_bucket_view: not used.
        overlap_with_ddp: must be ``False``.
        defaults: options of ``optimizer_class``.

    Attributes:
        optim: the optimizer of this rank's own parameters.

    Raises:
        TypeError, ValueError: as the constructor of ``optimizer_class``.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Callable[..., Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise ValueError("overlap_with_ddp=True is not there; a step follows the backward")
        group = find(process_group)
        if group is None:
            raise ValueError("this rank is not in process_group; make the optimizer on the group's ranks alone")
        self._group = group
        self._loads = [0] * group.size()  # elements of each rank's parameters
        self._owners: dict[int, int] = {}  # index of the rank, by id() of the parameter
        self._states: list[Any] | None = None
        self.optim: Optimizer | None = None
        super().__init__(params, defaults)
        own = [{**each, "params": self._own(each["params"], group.index)} for each in self.param_groups]
        self.optim = optimizer_class(own, **defaults)
        for outer, inner in zip(self.param_groups, self.optim.param_groups, strict=True):
            outer.update({name: value for name, value in inner.items() if name != "params"})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, spread over the ranks; on all ranks.

        Args:
            param_group: see ``Optimizer``.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for parameter in sorted(group["params"], key=Tensor.numel, reverse=True):
            owner = self._loads.index(min(self._loads))
            self._loads[owner] += parameter.numel()
            self._owners[id(parameter)] = owner
        if self.optim is not None:
            self.optim.add_param_group({**group, "params": self._own(group["params"], self._group.index)})
            group.update({name: value for name, value in self.optim.param_groups[-1].items() if name != "params"})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update this rank's own parameters, and get those of the others; on all ranks.

        Args:
            closure: computes the loss and its gradients before the step, and returns the loss.
        """
        Join.notify_join_context(self)
        with self.step_hooks(closure) as closure:
            loss = None
            if closure is not None:
                with enable_grad():
                    loss = closure()
            self._pass_options()
            assert self.optim is not None
            self.optim.step()
            self._share()
        self._states = None
        return loss

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a rank without inputs does in each step of the others: it steps, with the gradients that it has.

        A ``DistributedDataParallel`` before it in the block gives it those of the others.

        Args:
            kwargs: not used.
        """
        return _Hook(self)

    @property
    def join_process_group(self) -> Any:
        """Return the ranks."""
        return self._group

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states of all ranks to one, for its ``state_dict``; called on all ranks.

        Args:
            to: rank of the target.
        """
        target = member(self._group, to, None, "to")
        assert self.optim is not None
        call = self._group.begin("consolidate_state_dict", f"to {to}")
        self._states = self._group.gather(call, self._named(self.optim), target)

    def sharded_state_dict(self) -> dict[str, Any]:
        """Return the state of this rank's own parameters, by their places among all, and the options."""
        assert self.optim is not None
        self._pass_options()
        return {"state": self._named(self.optim), "param_groups": super()._state_dict()["param_groups"]}

    def load_sharded_state_dict(self, shards: Sequence[Mapping[str, Any]]) -> None:
        """Load the results of ``sharded_state_dict`` of all ranks, of which there may have been more or fewer.

        Args:
            shards: those results, in any order.

        Raises:
            ValueError: they do not fit.
        """
        state = {place: each for shard in shards for place, each in shard["state"].items()}
        self.load_state_dict({"state": state, "param_groups": shards[0]["param_groups"]})

    def _named(self, optimizer: Optimizer) -> dict[int, Any]:
        """Return the state of a rank's own parameters, by their places among all."""
        places = {id(parameter): place for place, parameter in enumerate(self._parameters())}
        return {places[id(parameter)]: dict(state) for parameter, state in optimizer.state.items() if state}

    def _state_dict(self) -> dict[str, Any]:
        if self._states is None:
            raise CollectiveError(
                "the state is spread over the ranks; call consolidate_state_dict(to=rank) on all ranks after the latest step, "
                "then state_dict() on that rank"
            )
        self._pass_options()
        state: dict[int, Any] = {}
        for part in self._states:
            state.update(part)
        return {"state": dict(sorted(state.items())), "param_groups": super()._state_dict()["param_groups"]}

    def _load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super()._load_state_dict(state_dict)  # checks it, and gives each parameter its state
        assert self.optim is not None
        own = {id(parameter) for group in self.optim.param_groups for parameter in group["params"]}
        self.optim.state.clear()
        self.optim.state.update({parameter: state for parameter, state in self.state.items() if id(parameter) in own})
        self.state.clear()
        self._pass_options()

    def _own(self, parameters: Iterable[Tensor], index: int) -> list[Tensor]:
        return [parameter for parameter in parameters if self._owners[id(parameter)] == index]

    def _pass_options(self) -> None:
        """Give the rank's optimizer the options that a scheduler or user has set here."""
        assert self.optim is not None
        for outer, inner in zip(self.param_groups, self.optim.param_groups, strict=True):
            inner.update({name: value for name, value in outer.items() if name != "params"})

    def _share(self) -> None:
        for tensors in by_dtype(self._parameters()):
            owned: list[Sequence[Tensor]] = [self._own(tensors, index) for index in range(self._group.size())]
            row = pack(owned[self._group.index], tensors[0].dtype)
            rows = self._group.all_gather(self._group.begin("ZeroRedundancyOptimizer", str(row.dtype)), row)
            for index, (part, given) in enumerate(zip(owned, rows, strict=True)):
                if index != self._group.index:
                    unpack(given, part)


class _Hook(JoinHook):
    """Part of an optimizer in the steps of others."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer.step()
