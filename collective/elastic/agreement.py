"""Agreement on who trains from the next step on: a pure state machine, one per worker.

Members of a training are in a *generation*. When it ends (a worker is lost, leaves or wants to join), each member that has
stopped gives a *report* to the leader: the lowest live member. The leader waits for all live members, then decides the next
generation, and answers each with the *decision*. The verdict on a lost worker is the same everywhere, so there is one leader.

A leader may be lost after it has answered some. So a report has the latest decision of its worker: a leader adopts a newer one
than its own, and passes it on, before it decides. A decision that only lost workers have seen has had no effect, because no
step counts before all members have prepared it.

A step is *prepared* where the gradients of all members have arrived. It is *completed* by a member that knows that all members
have prepared it. So when members stop, either all live ones have prepared or completed a step, and it counts for all, or none
has completed it, and it is done again.

Newcomers give their report to all workers. While there is no member yet, the lowest newcomer leads. It has to have heard from
every live worker, that it is a newcomer as well or that it does not train: otherwise two might found a training each. What was
heard before a worker was lost does not count, because that worker may have founded one. So a newcomer asks all again after a
loss, and tells which losses it knows of. It takes no answer of a lost worker after that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .events import (
    Adopt,
    Answered,
    AnswerMember,
    Appeared,
    Asked,
    AskMember,
    Decision,
    Decline,
    Disappeared,
    Event,
    GaveUp,
    Generation,
    Instruction,
    StepReport,
    Submitted,
    WaitedEnough,
)


class _Held(NamedTuple):
    """A question that is not answered yet."""

    ticket: int
    report: StepReport


class Agreement:
    """One worker's part in the agreement.

    Args:
        me: number of this worker.
        workers: numbers of the live workers that may train, this one included.
        at_least: how many members a generation has at least.
        questions: numbers for its questions, which grow.

    Attributes:
        decision: the latest that was adopted.
    """

    def __init__(self, me: int, workers: Iterable[int], at_least: int, questions: Iterator[int] | None = None) -> None:
        self.decision: Decision | None = None
        self._me = me
        self._live = {*workers, me}
        self._at_least = at_least
        self._own: StepReport | None = None  # while this worker waits for a decision
        self._trains = False  # it waits, or is a member
        self._seen = 0
        self._waited = False
        self._gone: frozenset[int] = frozenset()
        self._held: dict[int, _Held] = {}  # by worker
        self._latest: dict[int, int] = {}  # by worker, its latest question
        self._idle: set[int] = set()  # workers that said that they do not train
        self._asked: dict[int, int] = {}  # number of the open question to each worker
        self._questions = itertools.count(1) if questions is None else questions
        self._out: list[Instruction] = []

    def handle(self, event: Event) -> list[Instruction]:
        """Take an event; return what follows from it."""
        match event:
            case Submitted():
                self._submit(event.report)
            case Asked():
                self._hold(event)
            case Answered():
                self._answered(event)
            case Appeared():
                self._live.add(event.worker)
                self._ask_newly(event.worker)
            case Disappeared():
                self._lost(event.worker)
            case WaitedEnough():
                self._waited = True
            case GaveUp():
                self._give_up(event.reason)
        self._consider()
        out, self._out = self._out, []
        return out

    def wanted(self) -> bool:
        """Return whether this worker leads, and knows of a newcomer: then the members stop after this step."""
        decision = self.decision
        if not self._trains or decision is None or self._leader(decision) != self._me:
            return False
        return any(held.report.worker not in decision.members for held in self._held.values())

    def live(self) -> set[int]:
        """Return the numbers of the live workers that may train."""
        return set(self._live)

    # -- events

    def _submit(self, report: StepReport) -> None:
        self._own = report
        self._trains, self._waited = True, False
        self._ask_all()

    def _ask_all(self) -> None:
        assert self._own is not None
        self._own = self._own._replace(seen=self._seen, lost=self._gone)
        self._asked.clear()
        self._idle.clear()
        for to in self._addressees(self._own):
            self._ask(to)

    def _addressees(self, report: StepReport) -> list[int]:
        if report.decision is None:
            return sorted(self._live - {self._me})
        members = report.decision.members
        present = sorted(self._live.intersection(members) - {self._me})
        if min(members) not in self._live:  # it may have told the others a decision, and these have gone on
            return present
        return present[:1] if present and present[0] < self._me else []

    def _ask(self, to: int) -> None:
        assert self._own is not None
        number = self._asked[to] = next(self._questions)
        self._out.append(AskMember(to, number, self._own._replace(question=number)))

    def _ask_newly(self, worker: int) -> None:
        """Ask a worker that begins, as a newcomer, unless the question to it is open."""
        if self._own is not None and self._own.decision is None and worker not in self._asked:
            self._ask(worker)

    def _hold(self, event: Asked) -> None:
        worker = event.report.worker
        for lost in event.report.lost - self._gone:
            self._lost(lost)
        if worker in self._gone:
            return
        theirs = event.report.decision
        if theirs is not None and not self._trains and self._me in theirs.members:
            self._decline(theirs)
        overtaken = event.report.question < self._latest.get(worker, 0)
        if overtaken or not (self._trains or self._knows(event.report)):
            self._out.append(AnswerMember(event.ticket, None))
            return
        self._latest[worker] = event.report.question
        former = self._held.pop(worker, None)
        if former is not None:
            self._out.append(AnswerMember(former.ticket, None))
        self._live.add(worker)
        self._idle.discard(worker)
        self._held[worker] = _Held(event.ticket, event.report)
        if event.report.decision is None:
            self._ask_newly(worker)
        self._pass_on()

    def _answered(self, event: Answered) -> None:
        worker = next((each for each, number in self._asked.items() if number == event.number), None)
        if event.decision is not None and not self._trains and self._me in event.decision.members:
            self._decline(event.decision)
        if worker is None or self._own is None:
            return
        if event.decision is not None:
            if self._may_adopt(event.decision):
                self._adopt(event.decision)
            return
        del self._asked[worker]
        if self._own.decision is None and worker in self._held:
            self._ask(worker)  # it has begun since it answered
        elif self._own.decision is None:
            self._idle.add(worker)
        else:  # its generation was never confirmed by a live worker, so nothing was done in it
            self._submit(self._own._replace(decision=None, prepared=False, holds=False))

    def _decline(self, decision: Decision) -> None:
        """Leave a generation that this worker was put into by an old question, after it had left."""
        if decision.generation.number > self._seen:
            self._adopt(decision)
            self._out[-1] = Decline(decision)  # for ``Adopt``
            self._submit(StepReport(self._me, decision, leaves=True))
            for member in self._live.intersection(decision.members) - {self._me, *self._asked}:
                self._ask(member)  # they may have gone on without this worker

    def _lost(self, worker: int) -> None:
        if worker in self._gone:
            return
        self._gone |= {worker}
        self._live.discard(worker)
        self._held.pop(worker, None)
        self._latest.pop(worker, None)
        if self._own is not None and (self._own.decision is None or worker in self._asked):
            self._ask_all()

    def _give_up(self, reason: str) -> None:
        own, self._own, self._trains = self._own, None, False
        if own is None:
            return
        former = own.decision.generation if own.decision else None
        failed = Decision(Generation(self._seen, self._me), former, (), (), own.completed, error=reason)
        leads = own.decision is not None and self._leader(own.decision) == self._me
        for held in self._held.values():
            self._out.append(AnswerMember(held.ticket, failed if leads else None))
        self._held.clear()

    # -- decisions

    def _consider(self) -> None:
        """Adopt a newer decision that another worker has, or decide, if this worker leads and knows enough."""
        if self._own is None:
            return
        for held in self._held.values():
            theirs = held.report.decision
            if theirs is not None and theirs.generation.number > self._seen and self._me in theirs.members:
                self._adopt(theirs)
                return
        if self._own.decision is None:
            self._found()
        elif self._leader(self._own.decision) == self._me:
            self._decide(self._own.decision)

    def _found(self) -> None:
        """Found the training, if all live workers are newcomers or do not train, and this is the lowest newcomer."""
        assert self._own is not None
        newcomers = {each: held.report for each, held in self._held.items() if self._is_newcomer(held.report)}
        heard = newcomers.keys() | (self._idle if self._waited else set()) | {self._me}
        newcomers[self._me] = self._own
        if heard < self._live or min(newcomers) != self._me or len(newcomers) < self._at_least:
            return
        most = max(report.completed for report in newcomers.values())
        holder = min(each for each, report in newcomers.items() if report.completed == most)
        number = 1 + max(report.seen for report in newcomers.values())
        self._end(Decision(Generation(number, self._me), None, tuple(sorted(newcomers)), (holder,), most))

    def _is_newcomer(self, report: StepReport) -> bool:
        """Return whether a worker was a newcomer after all losses that this one knows of."""
        return report.decision is None and report.lost >= self._gone

    def _decide(self, current: Decision) -> None:
        """Decide the next generation, if all live members have stopped and there are enough workers."""
        assert self._own is not None
        members = {each: held.report for each, held in self._held.items() if held.report.decision == current}
        members[self._me] = self._own
        if not members.keys() >= self._live.intersection(current.members):
            return
        newcomers = [each for each in self._held if each not in members]
        staying = [each for each, report in members.items() if not report.leaves]
        finished = any(report.finished for report in members.values())
        chosen = () if finished else tuple(sorted([*staying, *newcomers]))
        if chosen and len(chosen) < self._at_least:
            return
        name = Generation(current.generation.number + 1, self._me)
        holders = {each: report for each, report in members.items() if report.holds}
        if not holders:  # all were lost before the others got the state: these may have had it from the beginning
            holders = {each: s for each, s in members.items() if s.completed == current.completed}
            holders = {each: s for each, s in holders.items() if each == min(holders)}
        completed = min((each.completed + each.prepared for each in holders.values()), default=current.completed)
        sources = tuple(sorted(each for each in holders if each in chosen)) or tuple(sorted(holders))
        lost = f"all workers that had the state after {completed} steps are lost; start again from a checkpoint"
        self._end(
            Decision(name, current.generation, chosen, sources, completed, finished)
            if holders
            else Decision(name, current.generation, (), (), completed, error=lost)
        )

    def _end(self, decision: Decision) -> None:
        """Adopt this worker's own decision, and answer everybody that it is for."""
        former = None if decision.former is None else self.decision
        for each, held in [*self._held.items()]:
            stopped = former is not None and held.report.decision == former
            if stopped or each in decision.members or decision.finished or decision.error:
                self._out.append(AnswerMember(held.ticket, decision))
                del self._held[each]
        self._adopt(decision)

    def _may_adopt(self, decision: Decision) -> bool:
        own = self._own
        if own is None or decision.generation.number < self._seen:
            return False
        return own.decision is None or decision.generation != own.decision.generation or bool(decision.error)

    def _adopt(self, decision: Decision) -> None:
        self._own = None
        self._seen = max(self._seen, decision.generation.number)
        self.decision = decision
        self._trains = self._me in decision.members
        self._asked.clear()
        self._pass_on()
        self._out.append(Adopt(decision))
        if not self._trains:
            for held in self._held.values():
                self._out.append(AnswerMember(held.ticket, decision if decision.finished else None))
            self._held.clear()

    def _knows(self, report: StepReport) -> bool:
        """Return whether this worker's latest decision is news for another worker, which it is for."""
        mine, theirs = self.decision, report.decision
        if mine is None or mine.error:
            return False
        if mine.finished:
            return theirs is None or theirs.generation.number < mine.generation.number
        if theirs is not None and theirs.generation == mine.former:
            return True
        if theirs is not None and report.leaves and theirs.generation.number < mine.generation.number:
            return True
        if report.worker not in mine.members:
            return False
        if theirs is None:
            return report.seen < mine.generation.number
        return theirs.generation != mine.generation and theirs.generation.number <= mine.generation.number

    def _pass_on(self) -> None:
        """Answer questions of workers that lack this worker's latest decision: their leader may be lost."""
        for each, held in [*self._held.items()]:
            if self._knows(held.report):
                self._out.append(AnswerMember(held.ticket, self.decision))
                del self._held[each]

    def _leader(self, decision: Decision) -> int | None:
        return min(self._live.intersection(decision.members), default=None)
