"""``Crossing``: what a recording knows of calls that go to other workers. A layer above has it.

A module of that layer has a function that makes one. It is asked for when a recording hears a call into packages about other
workers; that one and all later ones are shown to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..core.extend import GraphTask, Node
    from .description import Description

MAKERS, MAKER = "autograd_dist.api", "make_crossing"  # the module and its function: it gets the recorder


class Crossing(Protocol):
    """Part of a recording that goes to other workers. Its methods raise ``Unrecordable`` where it must end."""

    def begins(self, frame: FrameType) -> bool:
        """Note a call that begins, or a generator that goes on; return whether it is one that can be recorded."""
        ...

    def ended(self, frame: FrameType, result: Any) -> None:
        """Note that such a call has returned, raised (``None``) or yielded."""
        ...

    def finish(self, results: list[Any]) -> list[RemotePart]:
        """Return the parts of other workers, at the end of the recording.

        Args:
            results: tensors that the call returned.
        """
        ...

    def passing(self) -> Across | None:
        """Return the pass over other workers that begins at the results, after ``finish``; ``None`` if there is none."""
        ...


class Across(Protocol):
    """Pass that goes over other workers (``PassAcross``)."""

    @property
    def roots(self) -> Sequence[Node]:
        """Nodes where gradients arrive from other workers."""
        ...

    def run(self, task: GraphTask) -> None:
        """Write the pass; its task expects the roots."""
        ...


class RemotePart(Protocol):
    """Part of a plan that another worker replays."""

    def fits(self) -> bool:
        """Return whether a replay can begin, as far as it is known here."""
        ...

    @property
    def text(self) -> str:
        """A line for readers."""
        ...

    def description(self) -> Description | None:
        """Return what the other worker has recorded, as it tells; ``None`` if it records nothing."""
        ...
