"""Departures: workers of an open group that leave alone, so that none of them counts as lost.

The goodbye of a worker reaches those that are connected to it. If these leave too, no other worker hears of it, and one that
dials the worker later is refused, as by a dead one. So a worker that is about to leave says so in its report, and waits until
another worker has the report, one that stays if there is one. The report names all that are about to leave, as far as its
author knows. So does the report in the goodbye of the other worker, which waits likewise until its successor knows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..links.intervals import IntervalSet
    from .graph import LinkGraph


class Departures:
    """Departure of one worker, and those of which it has heard.

    Args:
        me: number of the worker.
        members: numbers of the workers that are not lost; the machine changes them.
        graph: the reports.

    Attributes:
        known: numbers of the members that are about to leave, as its report names them.
    """

    def __init__(self, me: int, members: IntervalSet, graph: LinkGraph) -> None:
        self._me = me
        self._members = members
        self._graph = graph
        self._told: tuple[int, int, set[int]] | None = (
            None  # the member, the version of the report, and whom that names
        )
        self._answered = self._granted = False
        self.known = graph.own.leaving

    def begin(self) -> None:
        """Note that this worker is about to leave."""
        self.known.add(self._me)

    def heard(self, leaving: set[int]) -> None:
        """Take those that another worker's report names."""
        self.known.update(leaving - self._graph.own.gone)

    def due(self) -> int | None:
        """Return the member that has to get the report now; ``None`` if there is none, or it waits for an answer."""
        if self._me not in self.known or self._answered:
            return None
        member = self._successor()
        if member is None:
            self._answered = True
        elif self._told is None or self._told[0] != member or not self.known <= self._told[2]:
            self._told = (member, self._graph.own.version + 1, set(self.known))
            return member
        return None

    def answered(self, number: int, version: int) -> None:
        """Note that a member has a report of this worker."""
        if self._told is not None and number == self._told[0] and version >= self._told[1]:
            self._answered = self._told[2] >= self.known

    def grants(self) -> bool:
        """Return, once, whether this worker may leave now."""
        grants, self._granted = self._answered and not self._granted, self._answered
        return grants

    def _successor(self) -> int | None:
        """Return the lowest other member that is reached and stays, or else leaves; ``None`` if there is no other."""
        reached = [number for number in self._members if number != self._me and not self._graph.own.suspects(number)]
        return next((number for number in reached if number not in self.known), next(iter(reached), None))
