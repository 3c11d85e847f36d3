"""Piece of a job that is split: the workers that one worker reaches, and those that no path leads to.

It decides which piece goes on, and whether every worker of a piece says itself that the others cannot be reached.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from ..links.reports import LinkFinding

if TYPE_CHECKING:
    from ..links.intervals import IntervalSet
    from .graph import LinkGraph


class Piece:
    """Piece to which one worker belongs, as far as it knows.

    Args:
        me: number of that worker.
        members: numbers of all workers that are not lost.
        graph: the reports that have arrived, and its own.

    Attributes:
        here: numbers of the workers of the piece; the others are outside.
        dead: numbers of the workers outside that a worker of the piece has found dead.
        silent: numbers of the other workers outside. They may be alive.
    """

    def __init__(self, me: int, members: IntervalSet, graph: LinkGraph) -> None:
        self._me = me
        self._graph = graph
        split = graph.splits(me, members)
        self.here: Set[int] = graph.paths(me, members).keys() | {me} if split else members
        outside = {number for number in members if number not in self.here} if split else set()
        self.dead = {number for number in outside if self._found_dead(number)}
        self.silent = outside - self.dead

    def _found_dead(self, number: int) -> bool:
        found = (self._graph.finding(other, number) for other in self._graph.suspecting(number) & self.here)
        return LinkFinding.DEAD in found

    @property
    def speaks(self) -> bool:
        """Return whether this worker decides for the piece: it has the lowest number."""
        return self._me == min(self.here)

    @property
    def goes_on(self) -> bool:
        """Return whether this piece goes on: it has more live workers than all others, or half with the lowest number."""
        here, silent = len(self.here), len(self.silent)
        return here > silent or (here == silent and min(self.here) < min(self.silent))

    @property
    def suspects(self) -> bool:
        """Return whether every worker of the piece says itself that it cannot reach any outside."""
        return all(self._graph[author].suspects(number) for author in self.here for number in self.silent)

    def confirms(self, asks: dict[int, int]) -> bool:
        """Return whether every worker of the piece has confirmed that it cannot reach any outside since it was asked.

        Args:
            asks: by number, the version of this worker's report that asked the others first.
        """
        others = self.here - {self._me}
        return self.suspects and all(
            self._graph[author].confirms(self._me, number, asks[number]) for author in others for number in self.silent
        )
