"""Graph of the members, made of their reports: two of them are linked unless one of them suspects the other.

Few members have anything to report. What is asked for the whole graph takes time for the findings, not for the members.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from typing import TYPE_CHECKING

from ..links.reports import Evidence, LinkFinding, Report

if TYPE_CHECKING:
    from ..links.intervals import IntervalSet

MOST_NAMES = 3  # workers named in the reason of a loss


class LinkGraph:
    """Latest report of each member, and an index of their findings.

    Args:
        me: number of the worker to which the graph belongs; its own report is in it, too.

    Attributes:
        own: the report of this worker; its ``links`` are changed by ``note`` alone.
        asking: numbers of the members whose reports ask others to confirm a loss.
        edition: counts the changes of the graph.
    """

    def __init__(self, me: int) -> None:
        self.own = Report()
        self.asking: set[int] = set()
        self.edition = 0
        self._me = me
        self._reports = {me: self.own}
        self._suspecting: defaultdict[int, set[int]] = defaultdict(set)  # by number, the authors that suspect it
        self._reaching: defaultdict[int, set[int]] = defaultdict(set)  # by number, the authors that reached it since
        self._checking: defaultdict[int, set[int]] = defaultdict(set)  # by number, the authors that ask all about it

    def __getitem__(self, author: int) -> Report:
        """Return the report of a member; an empty one if none has arrived."""
        return self._reports.get(author) or Report()

    def reports(self) -> list[Report]:
        """Return the reports that have arrived, and the own one."""
        return list(self._reports.values())

    # -- changes

    def take(self, author: int, report: Report) -> Report:
        """Replace the report of a member, and return the earlier one."""
        before = self[author]
        self._reports[author] = report
        if report.asks:
            self.asking.add(author)
        else:
            self.asking.discard(author)
        if before.checks != report.checks:
            for number in before.checks:
                self._remove(author, number, self._checking)
            for number in report.checks:
                self._checking[number].add(author)
        if before.findings() != report.findings():
            self._unlist(author, before.links)
            for number in report.links:
                self._list(author, number, report.suspects(number))
        return before

    def note(self, number: int, evidence: Evidence | None) -> None:
        """Change what this worker has found about another; ``None`` for nothing."""
        self._unlist(self._me, [number])
        if evidence is None:
            self.own.links.pop(number, None)
        else:
            self.own.links[number] = evidence
            self._list(self._me, number, self.own.suspects(number))

    def drop(self, number: int) -> None:
        """Remove a member, and what others have found about it."""
        report = self._reports.pop(number, Report())
        self._unlist(number, report.links)
        for other in report.checks:
            self._remove(number, other, self._checking)
        for kept in (self.own.links, self.own.asks, self.own.checks, self._suspecting, self._reaching, self._checking):
            kept.pop(number, None)
        self.asking.discard(number)
        self.edition += 1

    def _list(self, author: int, number: int, suspects: bool) -> None:
        (self._suspecting if suspects else self._reaching)[number].add(author)
        self.edition += 1

    def _unlist(self, author: int, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._remove(author, number, self._suspecting)
            self._remove(author, number, self._reaching)

    def _remove(self, author: int, number: int, index: dict[int, set[int]]) -> None:
        if number in index:
            index[number].discard(author)
            if not index[number]:
                del index[number]
        self.edition += 1

    # -- findings

    @property
    def empty(self) -> bool:
        """Return whether no report has a finding."""
        return not (self._suspecting or self._reaching or self._checking or self.own.checks)

    def suspected(self) -> Set[int]:
        """Return the numbers of the workers that a member suspects."""
        return self._suspecting.keys()

    def questioned(self) -> Set[int]:
        """Return the numbers of the workers that a member suspects, or about which one asks all."""
        return self._suspecting.keys() | self._checking.keys()

    def questioning(self, number: int) -> Set[int]:
        """Return the numbers of the members that suspect a worker or ask all about it."""
        return self.suspecting(number) | self._checking.get(number, frozenset())

    def suspecting(self, number: int) -> Set[int]:
        """Return the numbers of the members that suspect that worker."""
        return self._suspecting.get(number, frozenset())

    def witness(self, number: int) -> int | None:
        """Return the lowest member that reached a worker after it was suspected; ``None`` if there is none."""
        return min(self._reaching.get(number, ()), default=None)

    def finding(self, author: int, number: int) -> LinkFinding | None:
        """Return the finding of ``author`` about its link to that worker; ``None`` if its report has none."""
        link = self[author].links.get(number)
        return None if link is None else link.finding

    def reason(self, number: int, authors: Set[int], name: Callable[[int], str]) -> str:
        """Return why a worker is lost, from the reports of ``authors``, in words.

        Args:
            number: the lost worker.
            authors: numbers of the workers whose reports count.
            name: returns the name of the worker of a number.
        """
        found = [(other, self[other].links[number]) for other in sorted(self.suspecting(number)) if other in authors]
        if not found:
            return "it reached none of the others"
        # The strongest evidence, and of several the lowest number's, so that all workers give the same reason.
        author, evidence = max(found, key=lambda each: (each[1].finding, -each[0]))
        text = f"{evidence.reason}, says worker {name(author)!r}"
        others = [other for other, _ in found if other != author]
        names = ", ".join(repr(name(other)) for other in others[:MOST_NAMES])
        more = f" and {len(others) - MOST_NAMES} others" if len(others) > MOST_NAMES else ""
        return f"{text}; confirmed by {names}{more}" if others else text

    # -- links

    def linked(self, one: int, other: int) -> bool:
        """Return whether neither of two members suspects the other."""
        return one not in self.suspecting(other) and other not in self.suspecting(one)

    def denied(self, number: int) -> set[int]:
        """Return the numbers of the members to which a member has no link."""
        report = self[number]
        return {*self.suspecting(number), *(other for other in report.links if report.suspects(other))}

    def splits(self, start: int, members: IntervalSet) -> bool:
        """Return whether members may be outside the piece of ``start``; takes time for its missing links alone.

        The members outside have no link to any inside, so they are among those to which ``start`` has none, and each of them
        misses at least as many links as there are other members.
        """
        missing = {number for number in self.denied(start) if number in members}
        least = len(members) - len(missing)
        return any(len(self.suspecting(number)) + len(self[number].links) >= least for number in missing)

    def paths(self, start: int, members: Set[int]) -> dict[int, int]:
        """Return, for each member that a path leads to, the first worker on the shortest path.

        Args:
            start: the member where the paths begin.
            members: the numbers of all.
        """
        unseen = {number for number in self.denied(start) if number in members}
        first = {number: number for number in members if number not in unseen and number != start}
        fresh = set(first)
        while fresh and unseen:
            found = {}
            for number in unseen:
                if near := fresh - self.denied(number):
                    found[number] = first[min(near)]  # of several paths, the one through the lowest number
            first.update(found)
            fresh, unseen = set(found), unseen - found.keys()
        return first
