"""Graceful shutdown of one agent: the driver of the quiescence machine, and ``rpc.shutdown``."""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import TYPE_CHECKING

from ...base.errors import AgentClosedError, RpcError, RpcTimeoutError
from ...base.words import abridged
from ...core.futures import Future, complete_once, interruptible, program_clock
from ..options import check_timeout
from ..state import SHUT_DOWN
from ..threads.notices import FIRST_SECONDS, NEXT_SECONDS, LongWaits
from ..wire.messages import Topic
from . import quiescence as q
from .quiescence_messages import Counts, decode_message, encode_message
from .vacancies import Vacancies

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.peer import Peer

logger = logging.getLogger("telegrad.rpc")
SHUTDOWN_PAUSE_SECONDS = 0.02
DRAIN_SECONDS = 5.0
INQUIRY_SECONDS = 1.0
NOTED_SECONDS = 1.0  # calls that wait less are not named
SHUTDOWN_NAMES = 3  # of calls in a notice


class Shutdown:
    """Driver of one agent: gives events to the quiescence machine under a lock, and carries its instructions out after it."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.begun = False
        self.finished: Future[None] = Future()
        self._lock = threading.Lock()
        self._made: q.Quiescence | None = None
        # By rank: the number of the worker that was lost and may be replaced.
        self._vacant = {peer.info.id: peer.number for peer in agent.peers.gone()} if agent.state.places else {}
        self._waits: dict[str, float] = {}  # the wait for the others, and since when
        self._notices = LongWaits(
            agent.timers, FIRST_SECONDS, lambda: list(self._waits.items()), self._tell, NEXT_SECONDS
        )
        agent.control.on(Topic.QUIESCENCE, self._received)
        agent.on_close.append(self._on_close)
        agent.losses.on_agreed.append(lambda peer: self._handle(q.AllAgreed(peer.number)))
        agent.losses.on_lost.append(self._lost)
        agent.losses.on_joined.append(self._joined)
        agent.part(Vacancies).on_given_up.append(lambda peer: self._handle(q.PlaceGivenUp(peer.number)))

    def begin(self) -> None:
        """Begin: user code here has called shutdown."""
        self.begun = True
        for action in self.agent.on_ending:
            action()
        self.agent.timers.run_waiting()  # references that were dropped just now are no leak
        self._handle(q.ShutdownCalled(self._counts))

    def inquire(self) -> None:
        """Ask the leader which workers shutdown waits for."""
        self._handle(q.InquiryDue())

    def dial_missing(self) -> None:
        """Dial the workers that this one waits for: without a session it would not notice that one of them died."""
        with self._lock:
            ranks = self._machine().awaited()
        for peer in [self.agent.peers.at(rank) for rank in ranks]:
            if not peer.gone:
                self.agent.sessions.dial_missing(peer)

    def missing(self) -> str:
        """Return a text that names the workers that shutdown waits for."""
        return ", ".join(map(repr, self.missing_names())) or "no other worker"

    def missing_names(self) -> list[str]:
        """Return the names of the workers that shutdown waits for."""
        return [self.agent.peers.at(number).info.name for number in self._missing()]

    def reasons(self) -> str:
        """Return the names of the workers that shutdown waits for, and the calls of this worker that are under way."""
        calls = self._calls()
        own = f"; it waits for {abridged(calls, SHUTDOWN_NAMES, 'more calls')}" if calls else ""
        return f"{self.missing()}{own}"

    def wait(self, seconds: float, tells: bool = True) -> bool:
        """Wait for all workers, and return whether all were ready in time; 0 waits for as long as they live.

        Now and then it asks which workers are missing, and checks that they still live.

        Args:
            seconds: how long to wait.
            tells: whether it tells the user when that takes long.
        """
        began = program_clock.now()
        left = seconds or math.inf
        pause = min(INQUIRY_SECONDS, left / 4)  # several times in a short timeout: its error names the missing workers
        self._waits["shutdown"] = self.agent.timers.now()
        if tells:
            self._notices.begin()
        try:
            while left > 0:
                if _completes(self.finished, min(pause, left)):
                    return True
                self.dial_missing()
                self.inquire()
                left = began + (seconds or math.inf) - program_clock.now()
        finally:
            self._waits.clear()
        return self.finished.done()

    def _tell(self, _: str, again: bool) -> None:
        level = logging.INFO if again or not self._tells() else logging.WARNING  # again: nothing new to most users
        logger.log(level, "worker %r waits in shutdown for %s", self.agent.name, self.reasons())
        if level == logging.WARNING:
            self.agent.caller.on_long_wait(self.missing_names())

    def _tells(self) -> bool:
        """Return whether this worker tells the user: one does for all that wait, and those do that have calls under way."""
        missing = self._missing()
        waiting = [worker.id for worker in self.agent.peers.live() if worker.id not in missing]
        return self.agent.rank == min(waiting, default=self.agent.rank) or bool(self._calls())

    def _calls(self) -> list[str]:
        return [str(call.what) for call in self.agent.caller.table.older_than(NOTED_SECONDS)]

    def _missing(self) -> list[int]:
        with self._lock:
            machine = self._machine()
            return [*machine.missing(), *([] if machine.finished else sorted(machine.vacant))]

    def _machine(self) -> q.Quiescence:
        # lock held; made when first needed, because the workers are not known before
        if self._made is None:
            self._made = q.Quiescence(self.agent.number, self.agent.peers.numbers(), self._vacant.values())
            for number in self._vacant.values():
                self._expect(number)
        return self._made

    # -- workers that are lost, and those that take their places

    def _lost(self, peer: Peer) -> None:
        if self._may_be_replaced(peer):
            with self._lock:
                self._machine()
                self._vacant[peer.info.id] = peer.number
            self._handle(q.PlaceVacant(peer.number))
            self._expect(peer.number)
        self._handle(q.WorkerLost(peer.number))

    def _may_be_replaced(self, peer: Peer) -> bool:
        state = self.agent.state
        latest = self.agent.peers.find(peer.info.id)
        return bool(state.places) and not state.leaving and peer.gone != SHUT_DOWN and latest is peer

    def _expect(self, number: int) -> None:
        """Give a place up after a while."""
        self.agent.timers.after(self.agent.options.replacement_seconds(), self._handle, q.PlaceGivenUp(number))

    def _joined(self, peer: Peer) -> None:
        with self._lock:
            place = self._vacant.pop(peer.info.id, None)
        self._handle(q.WorkerJoined(peer.number, place))

    def _handle(self, event: q.Event) -> None:
        if not self.agent.state.ends_together:
            return
        with self._lock:
            machine = self._machine()
            instructions = machine.handle(event)
            if machine.finished:  # set before another worker is told and says goodbye: its goodbye is then no loss
                self.agent.state.leaving = True
        for instruction in instructions:
            self._carry_out(instruction)

    def _carry_out(self, instruction: q.Instruction) -> None:
        if isinstance(instruction, q.Send):
            peer = self.agent.peers.at(instruction.to)
            self.agent.control.post(peer, Topic.QUIESCENCE, encode_message(instruction.message))
        elif isinstance(instruction, q.Pause):
            self.agent.timers.after(SHUTDOWN_PAUSE_SECONDS, self._handle, q.PauseEnded())
        else:
            self.agent.threads.run_later(lambda: complete_once(self.finished))

    def _on_close(self) -> None:
        # A signal handler may close the agent, or the others may count this worker as lost: nothing else would end the wait.
        reason = f"worker {self.agent.name!r} was closed while it waited in shutdown: {self.agent.closed}"
        complete_once(self.finished, error=AgentClosedError(reason))

    def _received(self, peer: Peer, payload: bytes) -> None:
        self._handle(q.Received(peer.number, decode_message(payload)))

    def _counts(self) -> Counts:
        used = self.agent.control.used()
        peers = {peer.number: (peer.control.sent, peer.control.received) for peer in used}
        # Requests are not delivered reliably, so their numbers here and at peers may differ. They count as messages from this
        # worker to itself: then the counts change if a request was made or served between two rounds.
        peers[self.agent.number] = (self.agent.activity(), self.agent.activity())
        return Counts(peers, self.agent.open_work())


def shut_down(agent: Agent, graceful: bool, timeout: float, tells: bool = True) -> None:
    """Shut an agent down: ``rpc.shutdown``.

    Args:
        agent: the agent to shut down.
        graceful: wait until every live worker has called ``shutdown``.
        timeout: seconds to wait for the others; 0 for no limit.
        tells: whether it tells the user when it waits long for the others.
    """
    agent.state.check_open()
    check_timeout("timeout", timeout)
    if graceful and agent.threads.is_current():
        raise RpcError(
            f"you called shutdown() of worker {agent.name!r} inside a function, coroutine or callback that it runs, whose end "
            f"it would wait for; call it in the main program, or shutdown(graceful=False)"
        )
    try:
        if graceful:
            if agent.state.ends_together:
                _wait_for_all(agent, agent.part(Shutdown), timeout, tells)
            else:
                _wait_for_own_work(agent, timeout)
    finally:
        agent.close()


def _wait_for_all(agent: Agent, shutdown: Shutdown, timeout: float, tells: bool) -> None:
    shutdown.begin()
    if not shutdown.wait(timeout, tells):
        raise RpcTimeoutError(
            f"worker {agent.name!r} waited {timeout:g} s in shutdown for {shutdown.missing()}; let every worker call "
            f"rpc.shutdown() when it has no more to do, or give it longer"
        )
    _completes(agent.control.drain(), DRAIN_SECONDS)
    for action in agent.on_leave:
        action()


def _wait_for_own_work(agent: Agent, timeout: float) -> None:
    """Wait until no work is under way at two looks in a row, and none was between. For a worker of an open group."""
    agent.part(Shutdown).begin()
    deadline = program_clock.now() + (timeout or math.inf)
    idle_at = -1
    while (activity := agent.activity()) != idle_at or agent.open_work():
        idle_at = -1 if agent.open_work() else activity
        if program_clock.now() > deadline:
            raise RpcTimeoutError(
                f"worker {agent.name!r} waited {timeout:g} s in shutdown for {agent.open_work()} calls and messages of its own "
                f"that are under way; rpc.debug_info() says which, give them longer, or shutdown(graceful=False)"
            )
        interruptible(time.sleep, SHUTDOWN_PAUSE_SECONDS)
    for action in agent.on_leave:
        action()
    _completes(agent.losses.ask_to_leave(), min(DRAIN_SECONDS, max(deadline - program_clock.now(), 0.0)))


def _completes(future: Future[None], seconds: float) -> bool:
    try:
        future.wait(seconds)
    except TimeoutError:
        return False
    return True


# A thread that waits in shutdown has a frame of one of these.
SHUTDOWN_CODES = (Shutdown.wait.__code__, _wait_for_own_work.__code__)
