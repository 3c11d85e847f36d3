"""Uneven inputs: ranks that have no input left take part in what the others do, until all have none left."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...core.errors import CollectiveError
from ..group import ProcessGroup


class Present(NamedTuple):
    """One rank, as it tells the others at each step."""

    active: bool  # it has an input
    reduces: bool  # a backward that reduces gradients follows


class Joining:
    """The steps of ranks with uneven inputs.

    Args:
        group: the ranks.
        throw: end with an error on all ranks when the first has no input left.
    """

    def __init__(self, group: ProcessGroup, throw: bool) -> None:
        self._group = group
        self._throw = throw
        self.active = list(range(group.size()))  # indices of the ranks with an input at the latest step

    def step(self, reduces: bool) -> None:
        """Begin a step with an input.

        Raises:
            CollectiveError: another rank has none left, and ``throw`` was given.
        """
        self._tell(Present(True, reduces))

    def shadow(self, step: Callable[[bool], None]) -> None:
        """Take part in the steps of the others until none has an input left.

        Args:
            step: does what they do, with nothing to add; it hears whether they reduce gradients.

        Raises:
            CollectiveError: others have inputs left, and ``throw`` was given.
        """
        told = self._tell(Present(False, False))
        while any(each.active for each in told):
            step(any(each.reduces for each in told))
            told = self._tell(Present(False, False))

    def _tell(self, mine: Present) -> list[Present]:
        told = [Present(*each) for each in self._group.all_gather(self._group.begin("join", None), mine)]
        active = [index for index, each in enumerate(told) if each.active]
        if active:
            self.active = active
        if self._throw and active and len(active) < len(told):
            ended = ", ".join(str(self._group.ranks[index]) for index, each in enumerate(told) if not each.active)
            raise CollectiveError(
                f"rank {ended} has no input left and others have; give all ranks equally many, or leave "
                "throw_on_early_termination out"
            )
        return told
