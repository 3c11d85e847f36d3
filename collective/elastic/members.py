"""Members of elastic trainings, over the agent's calls: the driver of ``agreement.py``, and the transfer of state."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.errors import AgentClosedError, CollectiveError, CollectiveTimeoutError, RpcError
from ...core.futures import Future, complete_once
from ...rpc.extend import Agent, Peer, ServerCall
from ..numbers import GroupMethod
from .agreement import Agreement
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

if TYPE_CHECKING:
    from .state import TrainingState

BEGIN_SECONDS = 1.0  # time for workers of the job that have not begun to train, when enough others have
REST = -1  # place of the state that is not a parameter's


class _Ready(NamedTuple):
    """State that may be sent."""

    generation: Generation
    state: TrainingState
    rest: dict[str, Any]
    writes: (
        list[int] | None
    )  # of the training's last state, which the program may change: how often it was written by then


class ElasticTrainings:
    """The elastic trainings of one agent, by name.

    Args:
        agent: the agent.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._members: dict[str, ElasticMembers] = {}
        self.questions = itertools.count(1)
        agent.losses.on_lost.append(lambda peer: self._tell(Disappeared(peer.number), peer))
        agent.losses.on_joined.append(lambda peer: self._tell(Appeared(peer.number), peer))
        agent.on_close.append(self._closed)
        agent.server.serve(GroupMethod.REPORT, self._reported)
        agent.server.serve(GroupMethod.STATE, self._state_wanted)

    def add(self, name: str, members: ElasticMembers) -> None:
        """Add this worker's part in a training.

        Raises:
            CollectiveError: there is one of that name.
        """
        with self._lock:
            former = self._members.get(name)
            if former is not None and not former.ended:
                raise CollectiveError(
                    f"this worker takes part in a training {name!r} already; give this one another name="
                )
            self._members[name] = members

    def _tell(self, event: Event, peer: Peer) -> None:
        with self._lock:
            members = list(self._members.values())
        for each in members:
            each.told(event, peer)

    def _closed(self) -> None:
        with self._lock:
            members = list(self._members.values())
        for each in members:
            each.closed()

    def _reported(self, call: ServerCall) -> None:
        name, report = call.open()
        with self._lock:
            members = self._members.get(name)
        if members is None:
            call.reply(None)
        else:
            members.asked(call, report)

    def _state_wanted(self, call: ServerCall) -> None:
        name, generation, places = call.open()
        with self._lock:
            members = self._members.get(name)
        if members is None:
            raise CollectiveError(f"worker {self._agent.name!r} takes no part in a training {name!r}")
        members.state_wanted(call, Generation(*generation), places)


class ElasticMembers:
    """One worker's part in one training: it agrees with the others on the next members, and gives them its state.

    Args:
        agent: the agent.
        name: of the training.
        may_train: tells by its name whether a worker may be a member.
        at_least: how many members there are at least.
        timeout: seconds until a wait for the others fails.
        declined: called with a generation whose collectives this worker has to fail.

    Attributes:
        ended: this worker takes part no longer; it still answers others.
    """

    def __init__(
        self,
        agent: Agent,
        name: str,
        may_train: Callable[[str], bool],
        at_least: int,
        timeout: float,
        declined: Callable[[Decision], None],
    ) -> None:
        self._agent = agent
        self._name = name
        self._may_train = may_train
        self._at_least = at_least
        self._timeout = timeout
        self._declined = declined
        self.ended = False
        self._lock = threading.Lock()  # of the machine; its instructions are carried out without it, in any order
        live = [number for number in agent.peers.numbers() if not agent.peers.at(number).gone]
        able = [number for number in live if may_train(agent.peers.name(number))]
        questions = agent.part(ElasticTrainings).questions
        self._machine = Agreement(agent.number, able, at_least, questions)
        self._adopted: Future[Decision] = Future()
        self._calls: dict[int, ServerCall] = {}  # questions of others, by ticket
        self._tickets = 0
        self._served = threading.Condition()  # guards what follows
        self._ready: _Ready | None = None
        self._wanted: list[tuple[ServerCall, Generation, Sequence[int]]] = []
        self._have_state: set[int] = set()
        self._stopped = 0  # number of the latest generation that this worker has stopped in

    # -- agreement

    def change(self, report: StepReport) -> Decision:
        """Report, and return the next decision, when all other members have reported and there are enough.

        Raises:
            CollectiveTimeoutError: that took too long.
            CollectiveError: the state is lost.
        """
        adopted = self.submit(report)
        enough = partial(self._handle, WaitedEnough())
        timer = self._agent.timers.after(BEGIN_SECONDS, self._agent.threads.run_later, enough)
        try:
            decision = adopted.wait(self._timeout)
        except TimeoutError:
            reason = self._why_late()
            self._handle(GaveUp(reason))
            raise CollectiveTimeoutError(reason) from None
        except BaseException:
            self._handle(GaveUp(f"worker {self._agent.name!r} was interrupted while it waited for the others"))
            raise
        finally:
            timer.cancel()
        if decision.error:
            raise CollectiveError(decision.error)
        return decision

    def submit(self, report: StepReport) -> Future[Decision]:
        """Report; the future holds the next decision."""
        with self._served:
            self._ready = None
            self._stopped = report.decision.generation.number if report.decision else 0
            wanted, self._wanted = self._wanted, []
        for call, _, _ in wanted:
            call.fail(self._has_stopped())
        self._adopted = adopted = Future[Decision]()
        self._agent.state.check_open()
        self._handle(Submitted(report))
        return adopted

    def leads_newcomers(self) -> bool:
        """Return whether this worker is the leader, and knows of a newcomer."""
        with self._lock:
            return self._machine.wanted()

    def asked(self, call: ServerCall, report: StepReport) -> None:
        """Take another worker's report, which is answered later."""
        with self._lock:
            self._tickets += 1
            ticket = self._tickets
            self._calls[ticket] = call
        self._handle(Asked(ticket, report))

    def told(self, event: Event, peer: Peer) -> None:
        """Note that a worker has joined, or is lost."""
        if self._may_train(peer.info.name):
            self._agent.threads.run_later(partial(self._handle, event))
            with self._served:
                self._served.notify_all()

    def closed(self) -> None:
        """End the wait for a decision, because the agent has closed."""
        error = AgentClosedError(f"worker {self._agent.name!r} was closed while it waited for the others")
        complete_once(self._adopted, error=error)
        with self._served:
            self._served.notify_all()

    def _handle(self, event: Event) -> None:
        with self._lock:
            instructions = self._machine.handle(event)
        for instruction in instructions:
            self._carry_out(instruction)

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case AskMember():
                self._ask(instruction)
            case AnswerMember():
                with self._lock:
                    call = self._calls.pop(instruction.ticket)
                call.reply(instruction.decision)
            case Adopt():
                complete_once(self._adopted, instruction.decision)
            case Decline():
                self._declined(instruction.decision)

    def _ask(self, question: AskMember) -> None:
        if question.to not in self._agent.peers or (peer := self._agent.peers.at(question.to)).gone:
            self._agent.threads.run_later(partial(self._handle, Disappeared(question.to)))
            return
        body = (self._name, question.report)
        what = f"the report to the training {self._name!r}"
        answer = self._agent.caller.request(peer, GroupMethod.REPORT, body, 0.0, what, _label)

        def answered(future: Future[Any]) -> None:
            if future.exception() is None:  # otherwise the loss of the worker tells all
                event = Answered(question.number, future.value())
                self._agent.threads.run_later(partial(self._handle, event))

        answer.add_done_callback(answered)

    def _why_late(self) -> str:
        with self._lock:
            live = sorted(self._machine.live())
        present = ", ".join(repr(self._agent.peers.name(number)) for number in live)
        return (
            f"the training {self._name!r} could not go on within {self._timeout:g} s: at least {self._at_least} workers must "
            f"take part, and all that train must reach the end of their step; in the job are {present}"
        )

    # -- state

    def ready(self, generation: Generation, state: TrainingState) -> None:
        """Give the state to newcomers of a generation, until the next report. Parameters must not change until all have it."""
        self._give(_Ready(generation, state, state.rest(), None))

    def ready_for_late(self, generation: Generation, state: TrainingState) -> None:
        """Give the final state to workers that come when the training is over, until the program changes it."""
        self._give(_Ready(generation, state, state.rest(), state.writes()))

    def _give(self, ready: _Ready) -> None:
        with self._served:
            self._ready = ready
            self._have_state = set()
            waiting, self._wanted = self._wanted, []
        for call, wanted, places in waiting:
            self.state_wanted(call, wanted, places)

    def state_wanted(self, call: ServerCall, generation: Generation, places: Sequence[int]) -> None:
        """Send a part of the state, as soon as this worker is ready in that generation."""
        with self._served:
            ready = self._ready
            if generation.number <= self._stopped:
                raise self._has_stopped()
            if ready is None or ready.generation != generation:
                self._wanted.append((call, generation, places))
                return
        call.reply(ready.rest if list(places) == [REST] else self._parameters(ready, places))
        if list(places) == [REST]:
            with self._served:
                self._have_state.add(call.key[0])
                self._served.notify_all()

    def _parameters(self, ready: _Ready, places: Sequence[int]) -> Any:
        if ready.writes is None:
            return ready.state.parameters(places)
        found = ready.state.copied(places)
        if ready.state.writes() != ready.writes:
            raise CollectiveError(f"worker {self._agent.name!r} has changed its model since")
        return found

    def fetch(self, decision: Decision, state: TrainingState) -> None:
        """Get the state of a generation from all that have it, and load it.

        Raises:
            ArgumentValueError: the training has other settings.
            CollectiveError: a source has stopped meanwhile.
            RpcError: a source is lost.
        """
        until = time.monotonic() + self._timeout
        shares = state.shares(len(decision.holders))
        parts = [self._want(to, decision, places) for to, places in zip(decision.holders, shares, strict=True)]
        received: dict[int, Any] = {}
        for places, part in zip(shares, parts, strict=True):
            received.update(zip(places, part.wait(max(until - time.monotonic(), 1e-3)), strict=True))
        # Asked for last: its sender counts this worker as one that has the state.
        asked = [self._want(to, decision, [REST]) for to in decision.holders]
        rests = [each.wait(max(until - time.monotonic(), 1e-3)) for each in asked]
        state.check(rests[0])
        state.load(received, rests[0])

    def fetch_final(self, decision: Decision, state: TrainingState) -> None:
        """Get the state of a training that is over from a worker that has it, and load it.

        Raises:
            ArgumentValueError: the training has other settings.
            CollectiveError: no worker has it any more.
        """
        why = "they have left the job"
        for holder in decision.holders:
            if holder not in self._agent.peers or self._agent.peers.at(holder).gone:
                continue
            try:
                self.fetch(decision._replace(holders=(holder,)), state)
                return
            except (CollectiveError, RpcError) as error:
                why = str(error)
        raise CollectiveError(
            f"the training {self._name!r} was over after {decision.completed} steps when this worker came, and none of the "
            f"workers that took the last one can give the state: {why}; load it from a checkpoint"
        )

    def _want(self, to: int, decision: Decision, places: Sequence[int]) -> Future[Any]:
        body = (self._name, decision.generation, list(places))
        what = f"the state of the training {self._name!r}"
        peer = self._agent.peers.at(to)
        return self._agent.caller.request(peer, GroupMethod.STATE, body, self._timeout, what, _label)

    def wait_until_all_have_the_state(self, decision: Decision) -> None:
        """Wait until all live members of a generation have this worker's state: it leaves, and no other has it."""
        until = time.monotonic() + self._timeout
        with self._served:
            while (
                (left := until - time.monotonic()) > 0
                and not self._agent.closed
                and any(
                    member not in self._have_state and not self._agent.peers.at(member).gone
                    for member in decision.members
                )
            ):
                self._served.wait(left)

    def _has_stopped(self) -> CollectiveError:
        return CollectiveError(f"worker {self._agent.name!r} has stopped before it could send its state")


def _label(body: Any) -> list[tuple[str, Any]]:
    return [("the report", body)]
