"""Verdicts about workers that cannot be reached: a pure state machine, one per worker.

Each worker writes one report: which of the others it cannot reach, and whom it counts as lost. It sends the report to all
others whenever it changes. So every worker knows the same graph: its nodes are the members, and two of them are linked
unless one of them reports that it cannot reach the other. From this graph each worker draws the same conclusion:

* Members that no path leads to are *lost*. If one link is cut, others still connect its two ends: nobody is lost.
* Of a graph in several pieces, the piece with the majority of the live members goes on; if there are two halves, the one
  with the lowest rank. A worker in any other piece closes itself. Members of whom it is known that nobody listens at
  their address are dead and do not count.
* Silence proves nothing about others' links: who has reported nothing about a worker counts as linked to it. A worker
  that hears of an accusation asks the accused for a sign of life, and reports the answer or its absence.
* A worker that stood still for ``timeout`` seconds may be lost without knowing it. Until it hears from a member again, it
  decides nothing about members that may be alive: where another would go on, it closes.
* A refused connection proves more: the accused is lost after ``timeout`` seconds unless somebody reaches it, even if
  some of the members say nothing meanwhile.

A loss is final, and passed on by everyone who hears of it, so that all who stay end with the same losses. Two opposite
splits within the time that a report needs to travel could make both sides go on; one that lasts cannot.

Reports may arrive in any order, and through other workers where a link is cut; each has a version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias


class Finding(IntEnum):
    """Finding of one worker about its link to another."""

    REACHED = 1  # it answered after somebody had accused it
    SILENT = 2  # no connection, for as long as one may take to come back
    DEAD = 3  # nobody listens at its address, or another incarnation does


class Note(NamedTuple):
    """A finding, and the reason in words."""

    finding: Finding
    reason: str = ""


class Loss(NamedTuple):
    """Why a worker is lost; ``left``: it said goodbye itself."""

    reason: str
    left: bool = False


@dataclass(slots=True)
class Report:
    """Everything that one worker says about the others; the highest version is valid."""

    version: int = 0
    notes: dict[int, Note] = field(default_factory=dict)
    lost: dict[int, Loss] = field(default_factory=dict)

    def accuses(self, rank: int) -> bool:
        """Return whether its author cannot reach that worker."""
        note = self.notes.get(rank)
        return note is not None and note.finding is not Finding.REACHED


@dataclass(slots=True)
class Tell:
    """Post the report to these workers. Each that acknowledges it on a direct connection is `Verdicts.reached`."""

    to: list[int]
    report: Report


@dataclass(slots=True)
class Lose:
    """Remove that worker, whatever it may say later."""

    rank: int
    loss: Loss


@dataclass(slots=True)
class Close:
    """This worker is lost itself: end the agent and let the process fail."""

    reason: str


Instruction: TypeAlias = Tell | Lose | Close


class Verdicts:
    """The machine of the worker of rank ``me``; ``names`` are those of all workers, by rank."""

    def __init__(self, me: int, names: Mapping[int, str], timeout: float) -> None:
        self.me = me
        self.members = {*names}
        self.closed = ""
        self.outbox: list[Instruction] = []
        self._names = names
        self._timeout = timeout
        self._reports = {rank: Report() for rank in names}
        self._asked: set[int] = set()  # accused workers that we have asked for a sign of life
        self._dead_since: dict[int, float] = {}  # those that we found dead, and nobody vouched for since
        self._passed_on = 0  # losses that the others were told
        self._seen = 0.0  # when the last event was
        self._stood_still = False

    @property
    def mine(self) -> Report:
        """The report of this worker."""
        return self._reports[self.me]

    @property
    def quiet(self) -> bool:
        """Whether nobody is accused by anybody."""
        return not any(report.notes for report in self._reports.values())

    def take(self) -> list[Instruction]:
        """Return the instructions since the last call."""
        instructions, self.outbox = self.outbox, []
        return instructions

    # -- events

    def reached(self, rank: int, now: float) -> None:
        """Note that a worker answered on a direct connection."""
        self._watch_clock(now)
        self._stood_still = False
        known = self.mine.notes.get(rank)
        if self.closed or rank not in self.members or (known and known.finding is Finding.REACHED):
            return
        accusers = self._accusers(rank)
        if not accusers:
            return
        if accusers == [self.me]:
            del self.mine.notes[rank]
        else:
            self.mine.notes[rank] = Note(Finding.REACHED)
        # If we had accused it, everyone has drawn a graph without this link. Else only the accusers wait for a word.
        self._tell(sorted(self.members) if known else accusers)
        self._conclude(now)

    def failed(self, rank: int, note: Note, now: float) -> None:
        """Note that a worker cannot be reached from here."""
        self._watch_clock(now)
        known = self.mine.notes.get(rank)
        if self.closed or rank not in self.members or (known and known.finding >= note.finding):
            return
        self.mine.notes[rank] = note
        if note.finding is Finding.DEAD:
            self._dead_since[rank] = now
        self._tell(sorted(self.members))
        self._conclude(now)

    def left(self, rank: int, reason: str, now: float) -> None:
        """Note that a worker said goodbye."""
        if not self.closed and rank in self.members and rank != self.me:
            self._lose(rank, Loss(reason, left=True))
            self._conclude(now)

    def receive(self, sender: int, report: Report, now: float) -> None:
        """A report arrived; those of lost workers are ignored."""
        if self.closed or sender not in self.members or report.version <= self._reports[sender].version:
            return
        self._watch_clock(now)
        self._stood_still = False
        if self.me in report.lost:
            self._close(f"worker {self._names[sender]!r} counts it as lost ({report.lost[self.me].reason})")
            return
        before, self._reports[sender] = self._reports[sender], report
        for rank, loss in report.lost.items():
            if rank in self.members:
                self._lose(rank, loss)
        for rank in [rank for rank in report.notes if report.accuses(rank) and not before.accuses(rank)]:
            self._answer_accusation(sender, rank)
        self._conclude(now)

    def tick(self, now: float) -> float:
        """Conclude what follows from the time; to be called at least every ``timeout / 2``. Returns when, at the latest."""
        self._watch_clock(now)
        if not self.closed and self._dead_since:
            self._conclude(now)
        return min([now + self._timeout / 2, *(since + self._timeout for since in self._dead_since.values())])

    def _watch_clock(self, now: float) -> None:
        self._stood_still |= 0 < self._seen < now - self._timeout
        self._seen = now

    # -- questions

    def voucher(self, rank: int) -> int | None:
        """Return a worker that reached that one after it was accused."""
        for other in sorted(self.members):
            note = self._reports[other].notes.get(rank)
            if note is not None and note.finding is Finding.REACHED:
                return other
        return None

    def next_hop(self, rank: int) -> int | None:
        """Return the first worker on the shortest way to that one; ``None`` if no way is known."""
        return self._paths().get(rank)

    # -- accusations

    def _accusers(self, rank: int) -> list[int]:
        return [other for other in sorted(self.members) if self._reports[other].accuses(rank)]

    def _answer_accusation(self, accuser: int, rank: int) -> None:
        known = self.mine.notes.get(rank)
        if rank == self.me or rank not in self.members:
            return
        if known is not None and known.finding is Finding.REACHED:
            self._tell([accuser])
        elif known is None and rank not in self._asked:
            self._asked.add(rank)
            self._tell([rank])

    def _tell(self, to: list[int]) -> None:
        mine = self.mine
        mine.version += 1
        copy = Report(mine.version, dict(mine.notes), dict(mine.lost))
        self.outbox.append(Tell([rank for rank in to if rank != self.me], copy))

    # -- conclusions

    def _conclude(self, now: float) -> None:
        """Draw the conclusions until nothing new follows, and tell those who may not know."""
        known = -1
        while known != len(self.mine.lost) and not self.closed:
            known = len(self.mine.lost)
            self._split()
            self._expire(now)
        if not self.closed:
            self._forget()
            self._pass_on_losses()

    def _pass_on_losses(self) -> None:
        lost = self.mine.lost
        if len(lost) > self._passed_on:
            self._passed_on = len(lost)
            uninformed = [rank for rank in sorted(self.members) if not self._reports[rank].lost.keys() >= lost.keys()]
            self._tell(uninformed)

    def _split(self) -> None:
        """Lose those whom no path leads to, or close if they are the majority."""
        here = self._paths().keys() | {self.me}
        outside = self.members - here
        if not outside:
            return
        dead = {rank for rank in outside if any(self._finding(other, rank) is Finding.DEAD for other in here)}
        live = self.members - dead
        there = ", ".join(repr(self._names[rank]) for rank in sorted(live - here))
        if there and self._stood_still:
            self._close(f"it stood still for more than {self._timeout:g} s, and cannot reach {there} since")
        elif 2 * len(here) > len(live) or (2 * len(here) == len(live) and min(live) in here):
            reasons = {rank: self._reason(rank, here) for rank in sorted(outside)}
            for rank, reason in reasons.items():
                self._lose(rank, Loss(reason))
        else:
            self._close(
                f"it cannot reach {there}, and the side with the majority, or at a tie the lowest rank, goes on"
            )

    def _expire(self, now: float) -> None:
        """Lose those that we found dead a while ago, if nobody vouches for them."""
        for rank, since in list(self._dead_since.items()):
            if self.voucher(rank) is not None:
                self._dead_since[rank] = now
            elif now >= since + self._timeout:
                self._lose(rank, Loss(self._reason(rank, self.members)))

    def _forget(self) -> None:
        """Withdraw answers to accusations that were withdrawn: they prove nothing when the next one comes."""
        notes = self.mine.notes
        accused = {rank for report in self._reports.values() for rank in report.notes if report.accuses(rank)}
        if stale := notes.keys() - accused:
            self.mine.notes = {rank: note for rank, note in notes.items() if rank not in stale}
            self._tell(sorted(self.members))
        self._asked &= accused
        self._dead_since = {rank: since for rank, since in self._dead_since.items() if self.mine.accuses(rank)}

    def _lose(self, rank: int, loss: Loss) -> None:
        self.members.discard(rank)
        self._reports.pop(rank)
        self._dead_since.pop(rank, None)
        self.mine.notes.pop(rank, None)
        self.mine.lost[rank] = loss
        self.outbox.append(Lose(rank, loss))

    def _close(self, reason: str) -> None:
        self.closed = reason
        self.outbox.append(Close(reason))

    # -- the graph

    def _finding(self, author: int, rank: int) -> Finding | None:
        note = self._reports[author].notes.get(rank)
        return None if note is None else note.finding

    def _linked(self, one: int, other: int) -> bool:
        return not (self._reports[one].accuses(other) or self._reports[other].accuses(one))

    def _paths(self) -> dict[int, int]:
        """Return every member that a path leads to, and the first worker on the shortest one."""
        first: dict[int, int] = {}
        fresh = [self.me]
        unseen = self.members - {self.me}
        while fresh:
            found = [(rank, at) for at in fresh for rank in unseen if self._linked(at, rank)]
            for rank, at in sorted(found, reverse=True):  # of several ways, the one by the lowest rank
                first[rank] = first.get(at, rank)
            fresh = sorted(first.keys() & unseen)
            unseen -= first.keys()
        return first

    def _reason(self, rank: int, judges: set[int]) -> str:
        findings = list(self._findings(rank, judges))
        if not findings:
            return "it reached none of the others"
        # The strongest evidence first, then the lowest rank: so that the words are the same everywhere.
        findings.sort(key=lambda found: (-found[1].finding, found[0]))
        accuser, note = findings[0]
        text = f"{note.reason}, says worker {self._names[accuser]!r}"
        others = ", ".join(repr(self._names[other]) for other in sorted(other for other, _ in findings[1:]))
        return f"{text}; confirmed by {others}" if others else text

    def _findings(self, rank: int, judges: set[int]) -> Iterator[tuple[int, Note]]:
        for other in judges & self.members:
            if self._reports[other].accuses(rank):
                yield other, self._reports[other].notes[rank]
