"""Verdicts about workers that cannot be reached: a pure state machine, one per worker.

Each worker writes one report: which of the others it cannot reach (it *suspects* them), and which it counts as lost. It
sends the report to all others whenever it changes. So every worker knows the same graph: its nodes are the members, and two
of them are linked unless one of them suspects the other. From this graph each worker draws the same conclusion:

* Members to which no path leads are *lost*. If one link is cut, its two ends are still connected through others: no worker is
  lost.
* If the graph is in several pieces, the piece with the majority of the live members goes on. If there are two halves, the one
  with the lowest number goes on. A worker in any other piece closes itself, once all workers of its piece say that they cannot
  reach the others. A member is dead, and does not count, if it is known that no process listens at its address.
* Reports may be outdated, so a member that may be alive is lost only by the word of all others of a piece. The lowest number of
  the piece asks them, and each answers with a report that it has made since. One that has confirmed that it cannot reach a
  worker must not take it back before the question is withdrawn, and answers no question of that worker until then.
  ``docs/design/failures.md`` shows why two pieces cannot both go on.
* Silence proves nothing about the links of others: a worker that has reported nothing about another counts as linked to it. A
  worker that is told of a suspicion asks the suspected worker for a sign of life, and reports the answer or its absence. The
  question is the worker's report, the answer its acknowledgement; one of an older report may come from a worker that has died.
* A worker whose process was suspended for ``timeout`` seconds may be lost without knowing it, and the first messages that it
  reads were sent while it was suspended. So it reads for a while, then asks all members for a sign of life. Until one has
  answered, it decides nothing about members that may be alive. If none answers, it closes, also in a case in which another
  worker would go on.
* A refused connection proves more: the suspected worker is lost after ``timeout`` seconds unless a worker reaches it, even if
  some of the members report nothing meanwhile.

A loss is final. Every worker that is told of it tells the others, so that all workers that stay end with the same losses.

A worker that joins later is a member from then on. A report about it may come before the news that it has joined.

Reports may arrive in any order, and through other workers where a link is cut. Each has a version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ...core.errors import IllegalEventError
from ..links.intervals import IntervalSet
from ..links.reports import Evidence, LinkFinding, Loss, Report, Reports
from .pieces import Piece

# -- events


class Opened(NamedTuple):
    """A session to a worker opened."""

    number: int


class Reached(NamedTuple):
    """A worker acknowledged this worker's report of that version, on a direct session."""

    number: int
    version: int


class Unreachable(NamedTuple):
    """A worker cannot be reached from here."""

    number: int
    evidence: Evidence


class MemberJoined(NamedTuple):
    """A worker has joined the group. ``number`` is its number, which no worker had before."""

    number: int


class MemberLeft(NamedTuple):
    """A worker said goodbye, with its last report: news of a loss may be on its way still, on another session."""

    number: int
    reason: str
    report: Report = Report()


class ReportReceived(NamedTuple):
    """A report arrived."""

    sender: int
    report: Report


class TimePassed(NamedTuple):
    """The time that ``Verdicts.due`` returned has come."""


Event: TypeAlias = Opened | Reached | Unreachable | MemberJoined | MemberLeft | ReportReceived | TimePassed

# -- instructions


@dataclass(slots=True)
class SendReport:
    """Post the report to these workers. Each that acknowledges it on a direct session is `Reached`."""

    to: list[int]
    report: Report


@dataclass(slots=True)
class Lose:
    """Count that worker as lost for good, even if messages of it come later."""

    number: int
    loss: Loss


@dataclass(slots=True)
class CloseAgent:
    """Close the agent and end the process with a failure: this worker itself is lost."""

    reason: str


Instruction: TypeAlias = SendReport | Lose | CloseAgent


class Verdicts:
    """Machine of one worker.

    Args:
        me: number of the worker.
        members: numbers of all workers; a ``range`` takes no time for each number.
        name: returns the name of the worker of a number.
        timeout: seconds after which a dead worker is lost although other workers say nothing.
    """

    def __init__(self, me: int, members: Iterable[int], name: Callable[[int], str], timeout: float) -> None:
        self.me = me
        self.members = IntervalSet(members)
        self.closed = ""
        self._instructions: list[Instruction] = []
        self._name = name
        self._timeout = timeout
        self._reports = Reports({me: Report()})  # those that have arrived, and its own
        # Suspected workers that this one has asked for a sign of life, and the version of the first report that asked them.
        self._asked: dict[int, int] = {}
        self._held: set[int] = set()  # workers that it has reached, whose suspicion it must not withdraw yet
        self._dead_since: dict[int, float] = {}  # when this worker found others dead that no worker has reached since
        self._passed_on = 0  # losses of which the others were told
        self.awake_since = 0.0  # when this process last went on after a suspension
        self._seen = 0.0  # when the last event was
        self._woke: float | None = None  # when this process went on after a suspension, if no member has answered since
        self._asked_all = False  # it has asked all members since then

    @property
    def report(self) -> Report:
        """Return the report of this worker."""
        return self._reports[self.me]

    @property
    def quiet(self) -> bool:
        """Return whether no worker suspects another, and this one waits for no sign of life."""
        return self._woke is None and not any(report.links for report in self._reports.values())

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """Take an event at the time ``now``, in seconds, and return what the driver has to do.

        Events of lost workers have no effect, and neither has any event after `CloseAgent`.

        Raises:
            IllegalEventError: there is no worker of that number.
        """
        self._check_rank(event)
        if 0 < self._seen < now - self._timeout:
            self._woke, self._asked_all = now, False
            self.awake_since = now
        self._seen = now
        if not self.closed:
            self._handle(event, now)
        instructions, self._instructions = self._instructions, []
        return instructions

    def due(self, now: float) -> float:
        """Return when `TimePassed` has to be handled, at the latest."""
        return min([now + self._timeout / 2, *(since + self._timeout for since in self._dead_since.values())])

    def _check_rank(self, event: Event) -> None:
        if isinstance(event, MemberJoined):
            return
        number = event.sender if isinstance(event, ReportReceived) else getattr(event, "number", self.me)
        if number not in self.members and number not in self.report.gone:
            raise IllegalEventError(
                f"worker {self._name(self.me)!r} got an event of number {number}, which is not in its job"
            )

    def _handle(self, event: Event, now: float) -> None:
        match event:
            case Opened(number):
                if number in self.members:
                    self._opened(number)
            case Reached(number, version):
                if number in self.members:
                    self._reached(number, version, now)
                    self._heard(now)
            case Unreachable(number, evidence):
                if number in self.members:
                    self._failed(number, evidence, now)
            case MemberJoined(number):
                self._join(number)
                self._conclude(now)
            case MemberLeft(number, reason, report):
                if number in self.members and number != self.me:
                    self._left(number, reason, report, now)
            case ReportReceived(sender, report):
                if self._is_news(sender, report):
                    self._receive(sender, report, now)
                    self._heard(now)
            case TimePassed():
                self._ask_all(now)
                if self._dead_since or self._woke is not None:
                    self._conclude(now)

    # -- events

    def _opened(self, number: int) -> None:
        """Ask a suspected worker for a sign of life: the session may have ended since."""
        if self._reports.finding(self.me, number) is not LinkFinding.REACHED and self._reports.suspecting(number):
            self._ask(number)

    def _reached(self, number: int, version: int, now: float) -> None:
        known = self.report.links.get(number)
        suspecting = self._reports.suspecting(number)
        if not suspecting or version < self._asked.get(number, 0) or (known and known.finding is LinkFinding.REACHED):
            return
        if self._bound(number):
            self._held.add(number)
            return
        if suspecting == [self.me]:
            del self.report.links[number]
        else:
            self.report.links[number] = Evidence(LinkFinding.REACHED)
        # If this worker had suspected it, the link is missing in everybody's graph. Else only those that suspect it must know.
        self._send_report(sorted(self.members) if known else suspecting)
        self._conclude(now)

    def _failed(self, number: int, evidence: Evidence, now: float) -> None:
        known = self.report.links.get(number)
        if known and known.finding >= evidence.finding:
            return
        self.report.links[number] = evidence
        if evidence.finding is LinkFinding.DEAD:
            self._dead_since[number] = now
        self._send_report(sorted(self.members))
        self._asked[number] = self.report.version
        self._conclude(now)

    def _join(self, number: int) -> None:
        """Add a member. Reports about it may have arrived before."""
        if number in self.members or number in self.report.gone:
            return
        self.members.add(number)
        for sender, report in list(self._reports.items()):
            if number in report.gone:
                self._lose(number, report.loss(number))
                return
            if report.suspects(number):
                self._answer_suspicion(sender, number)

    def _left(self, number: int, reason: str, report: Report, now: float) -> None:
        """Lose a worker that left, after those whose loss may be why it leaves."""
        if self._is_news(number, report):
            self._receive(number, report, now)
        if not self.closed:
            self._lose(number, Loss(reason, left=True))
            self._conclude(now)

    def _is_news(self, sender: int, report: Report) -> bool:
        return sender in self.members and report.version > self._reports[sender].version

    def _receive(self, sender: int, report: Report, now: float) -> None:
        if self.me in report.gone:
            self._close(f"worker {self._name(sender)!r} counts it as lost ({report.loss(self.me).reason})")
            return
        before, self._reports[sender] = self._reports[sender], report
        for number in [number for number in self.members if number in report.gone] if report.gone else []:
            self._lose(number, report.loss(number))
        for number in [number for number in report.links if report.suspects(number) and not before.suspects(number)]:
            self._answer_suspicion(sender, number)
        if report.suspects(self.me) and not before.suspects(self.me):
            self._ask(sender)
        self._conclude(now)

    # -- suspension of this process

    def _ask_all(self, now: float) -> None:
        """Ask the members for a sign of life, after a suspension and some time to read what was sent meanwhile."""
        if self._woke is not None and not self._asked_all and now >= self._woke + self._timeout / 2:
            self._asked_all = True
            self._send_report(sorted(self.members))

    def _heard(self, now: float) -> None:
        """Note a sign of life of a member. If it is the answer to a question, this worker is still a member."""
        if self._asked_all and self._woke is not None and not self.closed:
            self._woke = None
            self._conclude(now)

    # -- questions

    def witness(self, number: int) -> int | None:
        """Return a worker that reached ``number`` after it was suspected; ``None`` if there is none."""
        return next(
            (other for other in sorted(self.members) if self._reports.finding(other, number) is LinkFinding.REACHED),
            None,
        )

    def next_hop(self, number: int) -> int | None:
        """Return the first worker on the shortest path to ``number``; ``None`` if no path is known."""
        return self._reports.paths(self.me, self.members).get(number)

    # -- suspicions

    def _answer_suspicion(self, sender: int, number: int) -> None:
        known = self._reports.finding(self.me, number)
        if number == self.me or number not in self.members:
            return
        if known is LinkFinding.REACHED:
            self._send_report([sender])
        elif known is None and number not in self._asked:
            self._ask(number)

    def _ask(self, number: int) -> None:
        self._send_report([number])
        self._asked.setdefault(number, self.report.version)

    def _send_report(self, to: list[int]) -> None:
        self.report.version += 1
        self._instructions.append(SendReport([number for number in to if number != self.me], self.report.copy()))

    # -- conclusions

    def _conclude(self, now: float) -> None:
        """Draw conclusions until nothing new follows, and tell the others of them."""
        known = -1
        while known != len(self.report.gone) and not self.closed:
            known = len(self.report.gone)
            self._resolve_split(now)
            self._lose_dead(now)
        if not self.closed:
            self._withdraw_answers()
            self._answer_questions()
            self._pass_on_losses()

    def _pass_on_losses(self) -> None:
        gone = self.report.gone
        if len(gone) > self._passed_on:
            self._passed_on = len(gone)
            uninformed = [number for number in self.members if not self._reports[number].gone.covers(gone)]
            self._send_report(uninformed)

    def _resolve_split(self, now: float) -> None:
        """Lose the members to which no path leads, once the piece has confirmed it, or close if that does not go on."""
        piece = Piece(self.me, self.members, self._reports)
        self._lose_all(piece, piece.dead)
        there = ", ".join(repr(self._name(number)) for number in sorted(piece.silent))
        speaks = bool(there) and self._woke is None and piece.goes_on and piece.speaks
        self._question(piece.silent if speaks else set())
        if speaks:
            if piece.confirms(self.report.asks):
                self._lose_all(piece, piece.silent)
        elif there and self._woke is not None:
            if now >= self._woke + 2 * self._timeout:
                self._close(f"it was suspended for more than {self._timeout:g} s, and cannot reach {there} since")
        elif not piece.goes_on and piece.suspects:
            self._close(
                f"it cannot reach {there}, and the side with the majority, or at a tie the lowest number, goes on"
            )

    def _lose_all(self, piece: Piece, numbers: Set[int]) -> None:
        reasons = {number: self._reports.reason(number, piece.here, self._name) for number in sorted(numbers)}
        for number, reason in reasons.items():
            self._lose(number, Loss(reason))

    # -- questions before a loss

    def _question(self, numbers: Set[int]) -> None:
        """Ask all members to confirm that these workers cannot be reached, and withdraw other questions."""
        asks = {number: self.report.asks.get(number, self.report.version + 1) for number in numbers}
        if asks != self.report.asks:
            self.report.asks = asks
            self._send_report(sorted(self.members))

    def _answer_questions(self) -> None:
        """Answer new questions, and ask the workers again whose suspicions were held for earlier ones."""
        heard = self.report.heard
        questions = {asker: max(report.asks.values()) for asker, report in self._reports.items() if report.asks}
        for asker in heard.keys() - questions.keys():
            del heard[asker]
        fresh = [asker for asker in sorted(questions) if asker != self.me and heard.get(asker, 0) < questions[asker]]
        for asker in fresh if self._woke is None else []:
            if asker not in self.report.asks and not self._bound(asker):
                heard[asker] = questions[asker]
                self._send_report([asker])
        for number in [number for number in self._held if not self._bound(number)]:
            self._held.discard(number)
            if self.report.suspects(number):
                self._ask(number)

    def _bound(self, number: int) -> bool:
        """Return whether this worker has confirmed to another that it cannot reach ``number``, which may be lost since."""
        return self.report.suspects(number) and any(
            self.report.confirms(asker, number, report.asks[number])
            for asker, report in self._reports.items()
            if asker != self.me and number in report.asks
        )

    def _lose_dead(self, now: float) -> None:
        """Lose the members that this worker found dead ``timeout`` seconds ago, if no worker has reached them since."""
        for number, since in list(self._dead_since.items()):
            if self.witness(number) is not None:
                self._dead_since[number] = now
            elif now >= since + self._timeout:
                self._lose(number, Loss(self._reports.reason(number, self.members, self._name)))

    def _withdraw_answers(self) -> None:
        """Withdraw answers to suspicions that were withdrawn: they prove nothing about a later suspicion."""
        suspected = {number for report in self._reports.values() for number in report.links if report.suspects(number)}
        if stale := self.report.links.keys() - suspected:
            for number in stale:
                del self.report.links[number]
            self._send_report(sorted(self.members))
        self._asked = {number: version for number, version in self._asked.items() if number in suspected}
        self._dead_since = {number: since for number, since in self._dead_since.items() if self.report.suspects(number)}

    def _lose(self, number: int, loss: Loss) -> None:
        self.members.discard(number)
        self._reports.pop(number, None)
        self._dead_since.pop(number, None)
        self.report.links.pop(number, None)
        self.report.asks.pop(number, None)
        self.report.lose(number, loss)
        self._instructions.append(Lose(number, loss))

    def _close(self, reason: str) -> None:
        self.closed = reason
        self._instructions.append(CloseAgent(reason))
