"""Verdicts about workers that cannot be reached: a pure state machine, one per worker.

Each worker writes one report: which of the others it cannot reach (it *suspects* them), and which it counts as lost. It
sends it to the workers that have to know it (``spreading.py``): at first to one, which collects the reports and asks all. The
reports make a graph: its nodes are the members, and two of them are linked unless one of them suspects the other. From what
it knows of the graph each worker draws conclusions, and which reports it does not know delays them but makes none wrong:

* Members to which no path leads are *lost*. If one link is cut, its two ends are still connected through others: no worker is
  lost.
* If the graph is in several pieces, the piece with the majority of the live members goes on. If there are two halves, the one
  with the lowest number goes on. A worker in any other piece closes itself, once all workers of its piece say that they cannot
  reach the others, or once the lowest of them closes and it cannot reach them either. A member is dead, and does not count, if
  it is known that no process listens at its address.
* Reports may be outdated, so a member that may be alive is lost only by the word of all others of a piece. The lowest number of
  the piece asks them, and each answers with a report that it has made since. One that has confirmed that it cannot reach a
  worker must not take it back before the question is withdrawn, and answers no question of that worker until then.
  ``docs/design/losses.md`` shows why two pieces cannot both go on.
* Silence proves nothing about the links of others: a worker that has reported nothing about another counts as linked to it. A
  worker that is told of a suspicion asks the suspected worker for a sign of life, and reports the answer or its absence. The
  question is the worker's report, the answer its acknowledgement; one of an older report may come from a worker that has died.
* A worker whose process was suspended for ``timeout`` seconds may be lost without knowing it, and the first messages that it
  reads were sent while it was suspended. So it reads for a while, then asks all members for a sign of life. Until one has
  answered, it decides nothing about members that may be alive. If none answers, it closes, also in a case in which another
  worker would go on.
* A refused connection proves more: the suspected worker is lost ``timeout`` seconds after all were asked unless a worker
  reaches it, even if some of the members report nothing meanwhile.

A loss is final. The worker that decides it tells all others, and the next one does so if that is lost meanwhile: all workers
that stay end with the same losses.

A worker that joins later is a member from then on. A report about it may come before the news that it has joined.

Reports may arrive in any order, and through other workers where a link is cut. Each has a version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from ...base.errors import IllegalEventError
from ..links.intervals import IntervalSet
from ..links.reports import Evidence, LinkFinding, Loss, Report
from ..state import SHUT_DOWN
from .departures import Departures
from .events import (
    CloseAgent,
    Event,
    Instruction,
    LeaveAsked,
    LeaveGranted,
    Lose,
    MemberJoined,
    MemberLeft,
    Opened,
    Reached,
    ReportReceived,
    SendReport,
    TimePassed,
    Unreachable,
)
from .graph import LinkGraph
from .pieces import Piece
from .spreading import Spreading


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
        self._grace = timeout / 10  # in which a suspected worker may answer the leader before all are asked about it
        self._graph = LinkGraph(me)
        self._spreading = Spreading(me, self.members, self._graph)
        self._departures = Departures(me, self.members, self._graph)
        # Suspected workers that this one has asked for a sign of life, and the version of the first report that asked them.
        self._asked: dict[int, int] = {}
        self._held: set[int] = set()  # workers that it has reached, whose suspicion it must not withdraw yet
        self._suspected_since: dict[int, float] = {}  # when this worker began to suspect others
        self._told_since: dict[int, float] = {}  # when it began to know that others are suspected
        self._dead_since: dict[int, float] = {}  # when this worker found others dead that no worker has reached since
        self._asks_all_since: float | None = None  # when it began to ask all members about those that it suspects
        self._piece: tuple[tuple[int, ...], Piece] | None = None  # the latest, and the state of graph and members
        self.awake_since = 0.0  # when this process last went on after a suspension
        self._seen = 0.0  # when the last event was
        self._woke: float | None = None  # when this process went on after a suspension, if no member has answered since
        self._asked_all = False  # it has asked all members since then

    @property
    def report(self) -> Report:
        """Return the report of this worker."""
        return self._graph.own

    @property
    def quiet(self) -> bool:
        """Return whether no worker suspects another, and this one waits for no sign of life."""
        return self._woke is None and self._graph.empty

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
        asked_all = self._asks_all_since is not None  # a loss, which ends that, goes to all
        if not self.closed:
            self._handle(event, now)
        if not self.closed and (to := self._spreading.due(asked_all or self._asks_all(now) is not None)):
            self._send_report(to)
        if not self.closed:
            self._tell_of_leaving()
        instructions, self._instructions = self._instructions, []
        return instructions

    def due(self, now: float) -> float:
        """Return when `TimePassed` has to be handled, at the latest."""
        asked_at = self._asks_all_since
        times = [now + self._timeout / 2]
        if asked_at is not None:
            times += [max(since, asked_at) + self._timeout for since in self._dead_since.values()]
        unanswered = self._told_since.keys() - self.report.checks.keys() - self.report.links.keys()
        times += [self._told_since[number] + self._grace for number in unanswered]
        return min(time for time in times if time > now)

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
                    self._departures.answered(number, version)
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
            case LeaveAsked():
                self._departures.begin()
            case TimePassed():
                self._ask_all(now)
                if self._told_since or self._woke is not None:
                    self._conclude(now)

    # -- events

    def _opened(self, number: int) -> None:
        """Ask a suspected worker for a sign of life: the session may have ended since."""
        if self._graph.finding(self.me, number) is not LinkFinding.REACHED and self._graph.questioning(number):
            self._ask(number)

    def _reached(self, number: int, version: int, now: float) -> None:
        known = self.report.links.get(number)
        asking = self._graph.questioning(number)
        if not asking or version < self._asked.get(number, 0) or (known and known.finding is LinkFinding.REACHED):
            return
        if self._bound(number):
            self._held.add(number)
            return
        self._note(number, None if asking == {self.me} else Evidence(LinkFinding.REACHED))
        self._conclude(now)

    def _failed(self, number: int, evidence: Evidence, now: float) -> None:
        known = self.report.links.get(number)
        if known and known.finding >= evidence.finding:
            return
        if number in self._departures.known and evidence.finding is LinkFinding.DEAD:
            self._lose(number, Loss(evidence.reason))
            self._conclude(now)
            return
        self._note(number, evidence)
        self._suspected_since.setdefault(number, now)
        if evidence.finding is LinkFinding.DEAD:
            self._dead_since[number] = now
        self._asked[number] = self.report.version + 1
        self._conclude(now)

    def _note(self, number: int, evidence: Evidence | None) -> None:
        self._graph.note(number, evidence)
        self._spreading.found()

    def _join(self, number: int) -> None:
        """Add a member. Reports about it may have arrived before."""
        if number in self.members or number in self.report.gone:
            return
        self.members.add(number)
        for report in self._graph.reports():
            if number in report.gone:
                self._lose(number, report.loss(number))
                return
        if self._graph.questioning(number):
            self._answer_suspicion(number)
        if self.report.checks:
            self._send_report([number])

    def _left(self, number: int, reason: str, report: Report, now: float) -> None:
        """Lose a worker that left, after those whose loss may be why it leaves."""
        if self._is_news(number, report):
            self._receive(number, report, now)
        if not self.closed:
            self._lose(number, Loss(reason, left=True))
            self._conclude(now)

    def _is_news(self, sender: int, report: Report) -> bool:
        return sender in self.members and report.version > self._graph[sender].version

    def _receive(self, sender: int, report: Report, now: float) -> None:
        if self.me in report.gone:
            self._close(f"worker {self._name(sender)!r} counts it as lost ({report.loss(self.me).reason})")
            return
        if sender in report.gone and self._follows(sender, report):
            self._close(report.loss(sender).reason)
            return
        self._departures.heard(report.leaving)
        before = self._graph.take(sender, report.without(self.report.gone))
        if not self.report.gone.covers(report.gone):
            few, many = sorted((report.gone, self.members), key=len)
            for number in [number for number in few if number in many]:
                self._lose(number, report.loss(number))
        fresh = {number for number in report.links if report.suspects(number) and not before.suspects(number)}
        checks = {number for number, version in report.checks.items() if before.checks.get(number) != version}
        for number in sorted(fresh | checks):
            self._answer_suspicion(number)
        if self.me in fresh:
            self._ask(sender)
        self._conclude(now)

    def _follows(self, sender: int, report: Report) -> bool:
        """Return whether this worker closes because its leader does, as it reaches none of those either."""
        return sender == self._spreading.leader and all(
            self.report.suspects(number) for number in report.links if report.suspects(number)
        )

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
        return self._graph.witness(number)

    def next_hop(self, number: int) -> int | None:
        """Return the first worker on the shortest path to ``number``; ``None`` if no path is known."""
        return self._graph.paths(self.me, self.members).get(number)

    # -- suspicions

    def _answer_suspicion(self, number: int) -> None:
        """Ask a worker that another suspects for a sign of life, unless that is done."""
        asked = number == self.me or number in self.report.links or number in self._asked
        if not asked and number in self.members:
            self._ask(number)

    def _ask(self, number: int) -> None:
        self._send_report([number])
        self._asked.setdefault(number, self.report.version)

    def _send_report(self, to: list[int]) -> None:
        to = [number for number in to if number != self.me]
        self.report.version += 1
        self._spreading.sent(to)
        self._instructions.append(SendReport(to, self.report.copy()))

    def _check_suspected(self, now: float) -> None:
        """Ask all members about those that are suspected, if this worker asks all and does not reach them soon itself."""
        suspected = [number for number in self._graph.suspected() if number in self.members]
        self._told_since = {number: self._told_since.get(number, now) for number in suspected}
        checks = {}
        for number, since in self._told_since.items() if self._asks_all(now) is not None else ():
            unanswered = number not in self.report.links and now >= since + self._grace
            if self.report.suspects(number) or unanswered:
                checks[number] = self.report.checks.get(number, self.report.version + 1)
        if checks != self.report.checks:
            self.report.checks = checks
            self._send_report(sorted(self.members))

    def _asks_all(self, now: float) -> float | None:
        """Return since when this worker asks all members about those that are suspected; ``None`` if it does not.

        The lowest of those that it does not suspect does so. Each next one that suspects a worker begins ``timeout`` seconds
        later, unless one is known that reaches it: those before it may not answer, or not know of the suspicion.
        """
        if not self._told_since:
            self._asks_all_since = None
        elif self._asks_all_since is None:
            before = self.members.below(self.me) - sum(number < self.me for number in self._suspected_since)
            since = min((t for number, t in self._suspected_since.items() if self.witness(number) is None), default=now)
            if not before or now >= since + before * self._timeout:
                self._asks_all_since = now
        return self._asks_all_since

    # -- conclusions

    def _conclude(self, now: float) -> None:
        """Draw conclusions until nothing new follows, and tell the others of them."""
        known = -1
        while known != len(self.report.gone) and not self.closed:
            known = len(self.report.gone)
            self._resolve_split(now)
            self._lose_dead(now)
        if not self.closed:
            self._check_suspected(now)
            self._withdraw_answers()
            self._answer_questions()

    def _resolve_split(self, now: float) -> None:
        """Lose the members to which no path leads, once the piece has confirmed it, or close if that does not go on."""
        piece = self._find_piece()
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
            self._close_piece(
                piece,
                f"it cannot reach {there}, and the side with the majority, or at a tie the lowest number, goes on",
            )

    def _find_piece(self) -> Piece:
        state = (self._graph.edition, len(self.members), len(self.report.gone))
        if self._piece is None or self._piece[0] != state:
            self._piece = (state, Piece(self.me, self.members, self._graph))
        return self._piece[1]

    def _close_piece(self, piece: Piece, reason: str) -> None:
        """Close, and tell the others of the piece: they know less of it if this worker leads them."""
        self.report.lose(self.me, Loss(reason))
        self._send_report(sorted(piece.here))
        self._close(reason)

    def _lose_all(self, piece: Piece, numbers: Set[int]) -> None:
        reasons = {number: self._graph.reason(number, piece.here, self._name) for number in sorted(numbers)}
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
        questions = {asker: max(self._graph[asker].asks.values()) for asker in self._graph.asking}
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
            self.report.confirms(asker, number, self._graph[asker].asks[number])
            for asker in self._graph.asking
            if number in self._graph[asker].asks
        )

    def _lose_dead(self, now: float) -> None:
        """Lose the members that this worker found dead ``timeout`` seconds ago, if no worker has reached them since.

        Only a worker that asks all decides so: the others hear from it.
        """
        asked_at = self._asks_all(now)
        for number, since in list(self._dead_since.items()):
            if self.witness(number) is not None:
                self._dead_since[number] = now
            elif asked_at is not None and now >= max(since, asked_at) + self._timeout:
                self._lose(number, Loss(self._graph.reason(number, self.members, self._name)))

    def _withdraw_answers(self) -> None:
        """Withdraw answers to suspicions that were withdrawn: they prove nothing about a later suspicion."""
        suspected = self._graph.questioned() | self.report.checks.keys()
        for number in self.report.links.keys() - suspected:
            self._note(number, None)
        self._asked = {number: version for number, version in self._asked.items() if number in suspected}
        for times in (self._suspected_since, self._dead_since):
            for number in [number for number in times if not self.report.suspects(number)]:
                del times[number]

    def _tell_of_leaving(self) -> None:
        if (to := self._departures.due()) is not None:
            self._send_report([to])
        if self._departures.grants():
            self._instructions.append(LeaveGranted())

    def _lose(self, number: int, loss: Loss) -> None:
        if number in self._departures.known:
            self._departures.known.discard(number)
            loss = Loss(SHUT_DOWN, left=True)  # it may have said goodbye to others
        self.members.discard(number)
        self._graph.drop(number)
        self._suspected_since.pop(number, None)
        self._dead_since.pop(number, None)
        self.report.lose(number, loss)
        self._spreading.lost(number)
        self._instructions.append(Lose(number, loss))

    def _close(self, reason: str) -> None:
        self.closed = reason
        self._instructions.append(CloseAgent(reason))
