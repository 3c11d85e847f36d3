"""``UnevenInputs``: modules whose ranks have different numbers of batches: a rank without takes part with zeros."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..joining import Join, Joinable, JoinHook


class UnevenInputs(Joinable):
    """Part of a data-parallel module: its ``join``.

    Attributes:
        require_backward_grad_sync: whether gradients of what is recorded become their mean.
    """

    _group: Any
    _divide_by_all = True
    _scale = 1.0  # of the mean: above 1 when ranks have joined early, and only the others count
    require_backward_grad_sync: bool

    @contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """Train with uneven inputs: a rank whose inputs end earlier takes part, with zeros, in the steps of the others.

        At the end of the block all ranks have the parameters and buffers of a rank that was among the last.

        Args:
            divide_by_initial_world_size: take the mean over all ranks; otherwise over those that have inputs.
            enable: ``False`` to do nothing.
            throw_on_early_termination: raise ``CollectiveError`` on all ranks as soon as one has no input left.
        """
        options = {"divide_by_initial_world_size": divide_by_initial_world_size}
        with Join([self], enable, throw_on_early_termination, **options):
            yield

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a rank without inputs does in each step of the others.

        Args:
            kwargs: ``divide_by_initial_world_size``, as for ``join``.
        """
        self._divide_by_all = kwargs.get("divide_by_initial_world_size", True)
        return _Hook(self)

    @property
    def join_process_group(self) -> Any:
        """Return the ranks."""
        return self._group

    @abstractmethod
    def copy_from(self, source: int) -> None:
        """Give all ranks the parameters and buffers of one.

        Args:
            source: its index in the group.
        """

    @abstractmethod
    def copy_buffers(self) -> None:
        """Give all ranks the buffers of the first rank that has an input, if the module was made so."""

    @abstractmethod
    def shadow_backward(self) -> None:
        """Take part in a backward of the others, with zeros; gradients become the mean."""

    def begin_step(self, reduces: bool) -> None:
        """Tell the others of a forward on this rank.

        Args:
            reduces: a backward that takes the mean of gradients may follow.
        """
        if self._join is None:
            self._scale = 1.0
        else:
            Join.notify_join_context(self)
            self._agree(reduces)

    def first_active(self) -> int:
        """Return the index in the group of the first rank that has an input."""
        return 0 if self._join is None else self._join.active[0]

    def _agree(self, reduces: bool | None) -> bool:
        """Hear of all ranks whether a backward that reduces gradients follows; ``None`` where there is no input."""
        told = self._group.all_gather(self._group.begin("join of DistributedDataParallel", None), reduces)
        active = sum(each is not None for each in told)
        self._scale = 1.0 if self._divide_by_all else self._group.size() / max(active, 1)
        return any(told)

    def _shadow(self) -> None:
        """Take part in a step of the others, and get its gradients."""
        reduces = self._agree(None)
        if self.require_backward_grad_sync:
            self.copy_buffers()
        if reduces:
            self.shadow_backward()


class _Hook(JoinHook):
    """Part of a module in the steps of others."""

    def __init__(self, module: UnevenInputs) -> None:
        self._module = module

    def main_hook(self) -> None:
        self._module._shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Get the parameters and buffers of a rank that was among the last."""
        self._module.copy_from(self._module.first_active())
