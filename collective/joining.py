"""Uneven inputs: ranks that have no input left take part in what the others do, until all have none left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from ..base.errors import CollectiveError
from ..core import device
from .group import ProcessGroup
from .registry import find


class JoinHook:
    """Part of a rank without inputs in what others do (``torch.distributed.algorithms.join.JoinHook``)."""

    def main_hook(self) -> None:
        """Take part in the collectives of one step of the others, with nothing to add."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Do what follows when no rank has an input left.

        Args:
            is_last_joiner: whether this rank was among the last that had one.
        """


class Joinable(ABC):
    """Object with collectives in each step (``torch.distributed.algorithms.join.Joinable``).

    It calls ``Join.notify_join_context(self)`` before those of a step.
    """

    _join: Join | None = None  # the block that it takes part in

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a rank without inputs does. The arguments are those of ``Join`` that it does not know."""

    @property
    def join_device(self) -> Any:
        """Return the CPU."""
        return device("cpu")

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """Return the group of its collectives."""


class Join:
    """Block of steps with uneven inputs (``torch.distributed.algorithms.join.Join``).

    A rank that leaves the block, because its inputs have ended, calls the main hooks of all joinables in their order for each
    step of the others, until all have left it; then the post hooks.

    Args:
        joinables: such as a ``DistributedDataParallel`` and a ``ZeroRedundancyOptimizer``. The first tells the others of each
            step.
        enable: ``False`` to do nothing.
        throw_on_early_termination: raise ``CollectiveError`` on all ranks as soon as one has no input left.
        kwargs: for the hooks, such as ``divide_by_initial_world_size`` of ``DistributedDataParallel``.

    Attributes:
        active: indices in the group of the ranks that had an input at the latest step.

    Raises:
        ValueError: there is no joinable, or they are of several groups.
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("joinables is empty; give the objects that have collectives in each step")
        groups: list[ProcessGroup | None] = [find(joinable.join_process_group) for joinable in joinables]
        if groups[0] is None or any(group is not groups[0] for group in groups):
            raise ValueError("joinables must be of one process group, which this rank is in")
        self._joinables = list(joinables)
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._group = groups[0]
        self._enable = enable
        self._throw = throw_on_early_termination
        self.active = list(range(self._group.size()))

    def __enter__(self) -> None:
        if self._enable:
            self._attach(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._enable:
            return
        try:
            if kind is None:
                self._shadow()
        finally:
            self._attach(None)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Tell the others that this rank has an input, if ``joinable`` is the first of a block; otherwise do nothing.

        Raises:
            CollectiveError: another rank has none left, and ``throw_on_early_termination`` was given.
        """
        join = joinable._join
        if join is not None and joinable is join._joinables[0]:
            join._tell(True)

    def _attach(self, join: Join | None) -> None:
        for joinable in self._joinables:
            joinable._join = join

    def _shadow(self) -> None:
        last = True
        while self._tell(False):
            last = False
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(last)

    def _tell(self, active: bool) -> bool:
        """Tell the others whether this rank has an input; return whether any has."""
        told = self._group.all_gather(self._group.begin("join", None), active)
        found = [index for index, each in enumerate(told) if each]
        if not found:
            return False
        self.active = found
        if self._throw and len(found) < len(told):
            ended = ", ".join(str(self._group.ranks[index]) for index, each in enumerate(told) if not each)
            raise CollectiveError(
                f"rank {ended} has no input left and others have; give all ranks equally many, or leave "
                "throw_on_early_termination out"
            )
        return True
