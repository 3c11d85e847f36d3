"""``Sink``: takes the results of a mesh call at its caller."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ...core.futures import Future
    from ..wire.bundle import Content


class Sink(Protocol):
    """Takes the results of a call at its caller.

    Attributes:
        future: completes when the call is over.
        reduces: whether it needs all results to make one of them.
    """

    future: Future[Any]
    reduces: bool

    def add(self, results: Sequence[tuple[int, Content]]) -> None:
        """Add results with their places in the mesh; one may come twice."""
        ...

    def futures(self) -> Sequence[Future[Any]]:
        """Return the futures that wait for results."""
        ...

    def complete(self, results: Sequence[tuple[int, Content]], context: contextvars.Context) -> None:
        """Note that the call is complete: with all results, or those of subtrees if they were added up.

        Args:
            results: with their places in the mesh.
            context: of the code that made the call.
        """
        ...
