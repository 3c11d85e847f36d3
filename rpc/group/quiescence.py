"""Graceful shutdown: no worker leaves while any worker still has work for another. A pure state machine, one per worker.

The lowest live worker leads. Each worker reports `Ready` to it when user code has called shutdown. When all are
ready, the leader asks every worker for its counts, in rounds. It looks for two successive rounds with equal counts, in which
as much was received as was sent and nothing is open. Then nothing happened between the first answer and the last question,
and nothing is on its way. Then, and only then, the leader sends `Go` (Mattern 1987, the four counter method). Lost
workers are left out, with all that was sent to and by them. When the leader is lost, the next one starts again.

Messages must arrive exactly once, in any order (the control queue), and must not be counted themselves. Every worker must be
told of every loss, and also when a worker that has finished leaves. Where lost workers are replaced, the place of one stays
*vacant* until another worker has it or it is given up, and no worker leaves before. Every worker must know the one that joins
before that sends anything. A worker leaves soon after `Finish`. It looks for no new
leader, because otherwise all workers would dial one another while they leave. Its goodbye says that all workers leave
(`AllAgreed`). A worker that gets this goodbye may leave too: its own `Go` is on its way, or was lost with the leader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ...base.errors import IllegalEventError
from ..links.control_events import Received as Received
from ..links.control_events import Send as Send
from ..links.control_events import WorkerLost as WorkerLost
from ..links.intervals import IntervalSet
from .quiescence_messages import AskCounts, Counts, CountsReport, Go, Inquiry, Message, Missing, Ready

# -- events


class ShutdownCalled(NamedTuple):
    """User code here is done. ``counts`` is called whenever the leader asks, and must not call this machine."""

    counts: Callable[[], Counts]


class PlaceVacant(NamedTuple):
    """A worker is about to be lost, and may be replaced: its number names the place until then."""

    number: int


class PlaceGivenUp(NamedTuple):
    """No worker comes to the place of one that was lost."""

    number: int


class WorkerJoined(NamedTuple):
    """A worker has joined, perhaps in the place of one that was lost."""

    number: int
    place: int | None


class AllAgreed(NamedTuple):
    """A worker left because the leader had told all workers to leave."""

    number: int


class PauseEnded(NamedTuple):
    """The time after a `Pause` is over."""


class InquiryDue(NamedTuple):
    """The driver wants to know which workers this one waits for, for example for the message of a timeout."""


Event: TypeAlias = (
    ShutdownCalled
    | Received[int, Message]
    | WorkerLost[int]
    | PlaceVacant
    | PlaceGivenUp
    | WorkerJoined
    | AllAgreed
    | PauseEnded
    | InquiryDue
)

# -- instructions


@dataclass(slots=True)
class Pause:
    """Handle `PauseEnded` after a short time: there is still work on some worker."""


@dataclass(slots=True)
class Finish:
    """Leave, once all messages are acknowledged or their receivers are gone. It comes once."""


Instruction: TypeAlias = Send[int, Message] | Pause | Finish


class Quiescence:
    """Machine of the worker of number ``me`` among the numbers ``workers``.

    Args:
        me: number of the worker.
        workers: numbers of all workers, this one included.
        vacant: numbers of the workers that were lost before and may be replaced.

    Attributes:
        vacant: numbers of the workers that were lost and may be replaced.
    """

    def __init__(self, me: int, workers: Iterable[int], vacant: Iterable[int] = ()) -> None:
        self.me = me
        self.vacant = set(vacant)
        self.finished = False
        self._instructions: list[Instruction] = []
        self._live = IntervalSet(workers)  # numbers of the live workers, this worker's too
        self._leader = next(iter(self._live))
        self._lost: set[int] = set()
        self._counts: Callable[[], Counts] | None = None  # set when this worker is ready
        self._ready: set[int] = set()  # live workers that are ready
        self._round = 0
        self._asking = False  # a round is under way
        self._pausing = False
        self._reports: dict[int, Counts] = {}
        self._previous: dict[int, Counts] | None = None  # the last round, if it was idle
        # By leader (if there are two, one is lost): its question, which waits until this worker knows of the same losses.
        self._questions: dict[int, AskCounts] = {}
        self._missing: list[int] | None = None  # the leader's latest answer to an inquiry

    @property
    def leader(self) -> int:
        """Return the lowest live number, as far as is known here."""
        return self._leader

    def handle(self, event: Event) -> list[Instruction]:
        """Take an event and return what the driver has to do.

        Raises:
            IllegalEventError: a pause ended that had not begun, or there is no worker of that number.
        """
        match event:
            case ShutdownCalled(counts):
                self._shutdown_called(counts)
            case Received(sender, message):
                if self._is_live(sender):
                    self._receive(sender, message)
            case WorkerLost(number):
                if self._is_live(number) and number != self.me:
                    self._lose(number)
            case PlaceVacant(number):
                self.vacant.add(number)
            case PlaceGivenUp(number):
                self.vacant.discard(number)
                self._lead()
            case WorkerJoined(number, place):
                self._join(number, place)
            case AllAgreed(number):
                if self._is_live(number) and self._counts is not None:
                    self._go()
            case PauseEnded():
                self._end_pause()
            case InquiryDue():
                if not self.finished and self.leader != self.me:
                    self._send(self.leader, Inquiry())
        instructions, self._instructions = self._instructions, []
        return instructions

    def _is_live(self, number: int) -> bool:
        if number not in self._live and number not in self._lost:
            raise IllegalEventError(f"worker {self.me} got an event of worker {number}, which is not in its job")
        return number in self._live

    def missing(self) -> list[int]:
        """Return the numbers of the workers that shutdown waits for.

        These are the workers that are not ready. If all are ready, those that have not answered in this round. If all have,
        those that had open work in the last round. Only the leader knows them: another worker returns the leader's latest
        answer to its inquiry or, without one, the leader.
        """
        if self.finished:
            return []
        if self.leader != self.me:
            return [self.leader] if self._missing is None else self._missing
        unready = [number for number in self._live if number not in self._ready]
        silent = [number for number in self._live if self._asking and number not in self._reports]
        return unready or silent or sorted(number for number, counts in self._reports.items() if counts.open)

    def awaited(self) -> list[int]:
        """Return the numbers this worker itself waits for: ``missing`` if it leads, else the leader, which waits for all."""
        return self.missing() if self.finished or self.leader == self.me else [self.leader]

    # -- events

    def _shutdown_called(self, counts: Callable[[], Counts]) -> None:
        if self._counts is None:
            self._counts = counts
            self._report_ready()

    def _end_pause(self) -> None:
        if not self._pausing:
            raise IllegalEventError(f"a pause of worker {self.me} ended that had not begun")
        self._pausing = False
        self._lead()

    def _lose(self, number: int) -> None:
        leader = self.leader
        self._live.discard(number)
        self._ready.discard(number)
        self._lost.add(number)
        if number == leader:
            self._leader = next(iter(self._live))
        self._asking, self._previous = False, None
        if self.finished:
            return  # it looks for no new leader (see the module's docstring)
        if number == leader:
            self._missing = None
            if self._counts is not None:
                self._report_ready()
        self._questions.pop(number, None)
        self._answer_if_possible()
        self._lead()

    def _join(self, number: int, place: int | None) -> None:
        if place is not None:
            self.vacant.discard(place)
        if number in self._lost:
            return
        self._live.add(number)
        self._asking, self._previous = False, None
        if number < self.leader:
            self._leader = number
            if self._counts is not None and not self.finished:
                self._report_ready()

    def _receive(self, sender: int, message: Message) -> None:
        if isinstance(message, Missing):
            self._missing = message.numbers
        elif isinstance(message, Go):
            self._go()
        elif self.finished:
            self._send(sender, Go())  # the sender follows another leader than the one that sent `Go` to this worker
        elif isinstance(message, Ready):
            self._ready.add(sender)
            self._lead()
        elif isinstance(message, AskCounts):
            self._note_question(sender, message)
        elif isinstance(message, CountsReport):
            self._note_report(sender, message)
        else:
            self._send(sender, Missing(self.missing()))

    # -- a worker that is led

    def _report_ready(self) -> None:
        self._ready.add(self.me)
        if self.leader != self.me:
            self._send(self.leader, Ready())
        self._lead()

    def _note_question(self, leader: int, ask: AskCounts) -> None:
        waiting = self._questions.get(leader)
        if waiting is None or waiting.round < ask.round:
            self._questions[leader] = ask
        self._answer_if_possible()

    def _answer_if_possible(self) -> None:
        """Answer the questions of leaders that know of no loss which is unknown here.

        While a loss is unknown here, a message of the lost worker may still arrive and start work, after an answer that
        said that this worker is idle. A worker that was lost before this one joined has sent it nothing.
        """
        if self._counts is None or self.finished:
            return
        for leader, ask in list(self._questions.items()):
            if not any(number in self._live for number in ask.lost):
                del self._questions[leader]
                self._send(leader, CountsReport(ask.round, self._counts()))

    def _go(self) -> None:
        if self.finished:
            return
        # A worker that sent `Ready` or a question to this one follows another leader, and may get no other `Go` than this one.
        followers = self._live if self.leader == self.me else sorted(self._ready | self._questions.keys())
        for number in followers:
            if number != self.me and number in self._live:
                self._send(number, Go())
        self.finished = True
        self._instructions.append(Finish())

    # -- the leader

    def _lead(self) -> None:
        waits = bool(self.vacant) or len(self._ready) < len(self._live)
        idle_or_led = self.finished or self.leader != self.me or waits
        if idle_or_led or self._asking or self._pausing or self._counts is None:
            return
        self._round += 1
        self._asking = True
        self._reports = {self.me: self._counts()}
        lost = sorted(self._lost)
        for number in self._live:
            if number != self.me:
                self._send(number, AskCounts(self._round, lost))
        self._end_round_if_complete()

    def _note_report(self, sender: int, report: CountsReport) -> None:
        if self._asking and report.round == self._round:
            self._reports[sender] = report.counts
            self._end_round_if_complete()

    def _end_round_if_complete(self) -> None:
        if len(self._reports) < len(self._live):  # all reports are from live workers, because a loss ends the round
            return
        self._asking = False
        tally = {number: self._without_lost(counts) for number, counts in self._reports.items()}
        idle = _is_idle(tally)
        if idle and tally == self._previous:
            self._go()
            return
        self._previous = tally if idle else None
        if not idle:
            self._pausing = True
            self._instructions.append(Pause())
        self._lead()  # a second round confirms an idle one at once

    def _without_lost(self, counts: Counts) -> Counts:
        return Counts({peer: pair for peer, pair in counts.peers.items() if peer in self._live}, counts.open)

    def _send(self, to: int, message: Message) -> None:
        self._instructions.append(Send(to, message))


def _is_idle(tally: Mapping[int, Counts]) -> bool:
    pairs = [pair for counts in tally.values() for pair in counts.peers.values()]
    sent, received = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    return sent == received and not any(counts.open for counts in tally.values())
