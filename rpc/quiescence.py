"""Graceful shutdown: nobody leaves while anybody still works for somebody. A pure state machine, one per worker.

The lowest live worker leads. Each worker reports `Ready` to it when user code has called shutdown. When all are
ready the leader asks for everyone's counts, in rounds. Two successive rounds with equal counts, in which as much was
received as was sent and nothing is open, mean that nothing happened between the first answer and the last question,
and that nothing is on its way: then, and only then, it says `Go` (Mattern 1987, the four counter method). Lost
workers are left out, with all that was sent to and by them; when the leader is lost the next one starts again.

Messages must arrive exactly once but may do so in any order (the control queue), and must not be counted themselves.
The loss of a worker must be told to every other one. Instructions are appended to ``outbox``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypeAlias


class Counts(NamedTuple):
    """What one worker has done for others so far.

    ``peers``: rank to (messages sent to it, messages received from it), for whatever surely arrives unless one of
    the two is lost. ``open``: whatever may still cause a message here: calls that wait for their reply, handlers
    that run, messages not acknowledged.
    """

    peers: Mapping[int, tuple[int, int]]
    open: int


@dataclass(slots=True)
class Ready:
    """To the leader: user code here has called shutdown."""

    kind: ClassVar[int] = 1


@dataclass(slots=True)
class Ask:
    """From the leader: answer with your counts, as soon as you have heard of these losses too."""

    kind: ClassVar[int] = 2
    round: int
    lost: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """To the leader: the counts for that round."""

    kind: ClassVar[int] = 3
    round: int
    counts: Counts


@dataclass(slots=True)
class Go:
    """All is done everywhere: leave."""

    kind: ClassVar[int] = 4


@dataclass(slots=True)
class Inquiry:
    """To the leader: whom are we waiting for?"""

    kind: ClassVar[int] = 5


@dataclass(slots=True)
class Missing:
    """The answer to an `Inquiry`."""

    kind: ClassVar[int] = 6
    ranks: list[int]


Message: TypeAlias = Ready | Ask | Report | Go | Inquiry | Missing


@dataclass(slots=True)
class Send:
    """Post ``message`` to the worker of rank ``to``."""

    to: int
    message: Message


@dataclass(slots=True)
class Pause:
    """There is still work somewhere: call `Quiescence.resume` after a little while."""


@dataclass(slots=True)
class Finish:
    """Leave, once what was sent is acknowledged or its receivers are gone. Said once."""


Instruction: TypeAlias = Send | Pause | Finish


class Quiescence:
    """The machine of the worker of rank ``me`` among the ranks ``workers``."""

    def __init__(self, me: int, workers: Iterable[int]) -> None:
        self.me = me
        self.outbox: list[Instruction] = []
        self.finished = False
        self._live = {*workers, me}
        self._lost: set[int] = set()
        self._counts: Callable[[], Counts] | None = None  # set when this worker is ready
        self._ready: set[int] = set()
        self._round = 0
        self._asking = False  # a round is under way
        self._pausing = False
        self._reports: dict[int, Counts] = {}
        self._previous: dict[int, Counts] | None = None  # the last round, if it was idle
        self._asked: dict[int, Ask] = {}  # by leader (of two, one is lost): the question that must wait for news
        self._told: list[int] | None = None  # whom the leader is waiting for, as far as we were told

    @property
    def leader(self) -> int:
        """The lowest live rank, as far as is known here."""
        return min(self._live)

    def take(self) -> list[Instruction]:
        """The instructions since the last call."""
        instructions, self.outbox = self.outbox, []
        return instructions

    # -- events

    def shutdown_called(self, counts: Callable[[], Counts]) -> None:
        """User code here is done. ``counts`` is called whenever the leader asks, and must not call back."""
        if self._counts is None:
            self._counts = counts
            self._report_ready()

    def resume(self) -> None:
        """A `Pause` is over."""
        self._pausing = False
        self._lead()

    def inquire(self) -> None:
        """Ask the leader whom we wait for, so that `missing` is exact here too: before a time-out, say."""
        if not self.finished and self.leader != self.me:
            self._send(self.leader, Inquiry())

    def worker_lost(self, rank: int) -> None:
        """That worker is gone for good."""
        if rank not in self._live or rank == self.me:
            return
        leader = self.leader
        self._live.discard(rank)
        self._lost.add(rank)
        self._asking, self._previous = False, None
        if rank == leader:
            self._told = None
            if self._counts is not None:
                self._report_ready()
        self._asked.pop(rank, None)
        self._answer_if_possible()
        self._lead()

    def receive(self, sender: int, message: Message) -> None:
        """A message arrived; those of lost workers are ignored."""
        if sender not in self._live:
            return
        if isinstance(message, Missing):
            self._told = message.ranks
        elif isinstance(message, Go):
            self._go()
        elif self.finished:
            self._send(sender, Go())  # it follows another leader than the one that let us go
        elif isinstance(message, Ready):
            self._ready.add(sender)
            self._lead()
        elif isinstance(message, Ask):
            self._asked_by(sender, message)
        elif isinstance(message, Report):
            self._reported(sender, message)
        else:
            self._send(sender, Missing(self.missing()))

    def missing(self) -> list[int]:
        """Ranks that shutdown waits for: not ready yet, else silent in this round, else at work in the last one.

        Only the leader knows; elsewhere it is what the leader last said (`inquire`), else the leader itself.
        """
        if self.finished:
            return []
        if self.leader != self.me:
            return [self.leader] if self._told is None else self._told
        unready = self._live - self._ready
        silent = self._live - self._reports.keys() if self._asking else set()
        busy = {rank for rank, counts in self._reports.items() if counts.open}
        return sorted(unready or silent or busy)

    # -- a worker that is led

    def _report_ready(self) -> None:
        self._ready.add(self.me)
        if self.leader != self.me:
            self._send(self.leader, Ready())
        self._lead()

    def _asked_by(self, leader: int, ask: Ask) -> None:
        waiting = self._asked.get(leader)
        if waiting is None or waiting.round < ask.round:
            self._asked[leader] = ask
        self._answer_if_possible()

    def _answer_if_possible(self) -> None:
        """Answer the questions whose leader knows of no loss that we have not heard of.

        Until we have, a message of the lost one may still arrive here and start work, after we said that we are idle.
        """
        if self._counts is None or self.finished:
            return
        for leader, ask in list(self._asked.items()):
            if self._lost.issuperset(ask.lost):
                del self._asked[leader]
                self._send(leader, Report(ask.round, self._counts()))

    def _go(self) -> None:
        if self.finished:
            return
        # Who reported to us, or asked us, follows another leader than we do, and may wait for our word alone.
        followers = self._live if self.leader == self.me else self._live & (self._ready | self._asked.keys())
        for rank in sorted(followers - {self.me}):
            self._send(rank, Go())
        self.finished = True
        self.outbox.append(Finish())

    # -- the leader

    def _lead(self) -> None:
        idle_or_led = self.finished or self.leader != self.me or not self._live <= self._ready
        if idle_or_led or self._asking or self._pausing or self._counts is None:
            return
        self._round += 1
        self._asking = True
        self._reports = {self.me: self._counts()}
        for rank in sorted(self._live - {self.me}):
            self._send(rank, Ask(self._round, sorted(self._lost)))
        self._end_round_if_complete()

    def _reported(self, sender: int, report: Report) -> None:
        if self._asking and report.round == self._round:
            self._reports[sender] = report.counts
            self._end_round_if_complete()

    def _end_round_if_complete(self) -> None:
        if self._reports.keys() != self._live:
            return
        self._asking = False
        tally = {rank: self._among_the_living(counts) for rank, counts in self._reports.items()}
        idle = _is_idle(tally)
        if idle and tally == self._previous:
            self._go()
            return
        self._previous = tally if idle else None
        # An idle round is confirmed at once; alone there is nobody in between, and two are one as well.
        if not idle:
            self._pausing = True
            self.outbox.append(Pause())
        self._lead()

    def _among_the_living(self, counts: Counts) -> Counts:
        return Counts({peer: pair for peer, pair in counts.peers.items() if peer in self._live}, counts.open)

    def _send(self, to: int, message: Message) -> None:
        self.outbox.append(Send(to, message))


def _is_idle(tally: Mapping[int, Counts]) -> bool:
    pairs = [pair for counts in tally.values() for pair in counts.peers.values()]
    sent, received = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    return sent == received and not any(counts.open for counts in tally.values())
