"""Spreading of reports: which members have to get the report of a worker, so that a loss costs few messages.

* A worker that suspects another tells its *leader*: the lowest member that it does not suspect.
* The leader asks all members about a suspected worker, unless it reaches that worker itself. So does a worker whose suspicion
  has stood for long (``Verdicts._asks_all``).
* A member tells each that asks about a worker, or suspects it, what it has found, and tells it of each later change.
* A loss goes to the leader, and from there to every member whose report does not show that it knows.

So n workers lose one with about 3 n messages: a question, an answer, and the verdict. What may be concluded from the reports
does not depend on their ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..links.intervals import IntervalSet
    from .graph import LinkGraph


class Spreading:
    """Members that have to get the report of one worker.

    Args:
        me: number of the worker.
        members: numbers of the workers that are not lost; the machine changes them.
        graph: the reports.
    """

    def __init__(self, me: int, members: IntervalSet, graph: LinkGraph) -> None:
        self._me = me
        self._members = members
        self._graph = graph
        self._sent: dict[int, int] = {}  # version of the latest report that each was sent
        self._shown: set[int] = set()  # members that were sent findings of this worker
        self._found_in = self._lost_in = 0  # versions of the reports that first had its latest finding and loss
        self._all_know_losses = 0  # version of the report by which all members were told of losses

    @property
    def leader(self) -> int:
        """Return the lowest member that this worker does not suspect."""
        own = self._graph.own
        return next(number for number in self._members if not own.suspects(number))

    def found(self) -> None:
        """Note that a finding of this worker has changed."""
        self._found_in = self._graph.own.version + 1

    def lost(self, number: int) -> None:
        """Note that a worker is lost."""
        self._lost_in = self._graph.own.version + 1
        self._sent.pop(number, None)
        self._shown.discard(number)
        if not self._graph.own.links:
            self._shown.clear()

    def sent(self, to: list[int]) -> None:
        """Note that the report was sent."""
        own = self._graph.own
        self._sent.update(dict.fromkeys(to, own.version))
        if own.links:
            self._shown.update(to)
        else:
            self._shown.difference_update(to)

    def due(self, asks_all: bool) -> list[int]:
        """Return the members that have to get the report now, the lowest first.

        Args:
            asks_all: this worker asks all members about those that are suspected.
        """
        leader = self.leader
        if not asks_all and leader != self._me:
            return self._behind(self._concerned(), {leader})
        news = self._lost_in != self._all_know_losses
        self._all_know_losses = self._lost_in
        return self._behind(self._concerned(), {*self._members} if news else set())

    def _concerned(self) -> set[int]:
        """Return the members that have to know the findings of this worker: they ask, know earlier ones, or lead it."""
        graph = self._graph
        concerned = self._shown.union(*map(graph.questioning, graph.own.links))
        cut_off = {number for number in concerned if graph.own.suspects(number) and graph.witness(number) is None}
        concerned -= cut_off  # no way to them is known
        if any(map(graph.own.suspects, graph.own.links)):
            concerned.add(self.leader)
        return concerned

    def _behind(self, of_findings: set[int], of_losses: set[int]) -> list[int]:
        """Return those that do not know the latest findings or losses, as far as this worker knows."""
        sent, graph = self._sent, self._graph
        gone = graph.own.gone
        behind = {number for number in of_findings if sent.get(number, 0) < self._found_in}
        behind |= {n for n in of_losses if sent.get(n, 0) < self._lost_in and not graph[n].gone.covers(gone)}
        behind.discard(self._me)
        return sorted(number for number in behind if number in self._members)
