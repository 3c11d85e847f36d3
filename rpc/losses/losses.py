"""Losses of workers: the driver of ``verdict.py``. It takes evidence in, sends reports, and declares workers lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...base.worker_reports import reporter
from ...core.futures import Future, complete_once
from ..links.link import LinkState
from ..links.reports import Loss, decode_report, encode_report
from ..threads.due_work import DueWork
from ..wire.control import ControlMessage, expelled
from ..wire.messages import Topic
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
from .verdict import Verdicts

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from ..links.control_channel import ControlChannel
    from ..links.peer import Peer
    from ..links.peers import Peers
    from ..options import GrpcRpcBackendOptions
    from ..state import AgentState
    from ..threads.timers import Timers

logger = logging.getLogger("telegrad.rpc")


class Losses:
    """Driver of the verdicts of one agent: gives events to the machine under a lock, and does its instructions without it.

    Args:
        state: the agent's state.
        peers: the workers of the job.
        control: sends the reports.
        timers: the agent's timers.
        options: of the agent.
        expel: closes the agent, because the job counts its worker as lost; gets the reason.

    Attributes:
        on_lost: called with each peer that is lost or left.
        on_agreed: called, before ``on_lost``, with each peer that left in a shutdown of all workers.
        on_told: called with each peer that is lost, but not with one that left, and the reason, after ``on_lost``.
        on_joined: called with each peer that joins a dynamic group.
        on_cut: called with a peer when the link to it is found to be cut.
    """

    def __init__(
        self,
        state: AgentState,
        peers: Peers,
        control: ControlChannel,
        timers: Timers,
        options: GrpcRpcBackendOptions,
        expel: Callable[[str], None],
    ) -> None:
        self.on_lost: list[Callable[[Peer], None]] = []
        self.on_agreed: list[Callable[[Peer], None]] = []
        self.on_told: list[Callable[[Peer, str], None]] = []
        self.on_joined: list[Callable[[Peer], None]] = []
        self.on_cut: list[Callable[[Peer], None]] = []
        self._state = state
        self._peers = peers
        self._control = control
        self._timers = timers
        self._expel = expel
        self._keepalive = options.keepalive
        self._timeout = options.reconnect_timeout
        self._lock = threading.Lock()
        self._made: Verdicts | None = None
        self._due = DueWork()  # added with the lock held, done in the machine's order: a first loss is told first
        self._quiet = True  # no worker suspects another
        self._leave: Future[None] | None = None  # completes when this worker may leave alone
        self._troubled: dict[Peer, None] = {}  # peers whose dialing failed
        self._alarm = timers.alarm(self.watch)
        control.on(Topic.MEMBERSHIP, self._received)

    # -- events

    def opened(self, peer: Peer) -> None:
        """Note that a session to ``peer`` opened."""
        if not self._quiet:
            self._handle(Opened(peer.number))
        self._update_cut(peer, None)

    def ended(self, peer: Peer) -> None:
        """Take the evidence against ``peer`` after a session to it ended, or could not be made."""
        if peer.suspicion.trouble is not None:
            self._troubled[peer] = None
        evidence = peer.evidence()
        if evidence is not None:
            if self._state.leaving:
                self._remove(peer, evidence.reason)
                return
            self._handle(Unreachable(peer.number, evidence))
        self._update_cut(peer, None)

    def answered(self, peer: Peer, acknowledged: list[ControlMessage]) -> None:
        """Note that ``peer`` acknowledged messages on a direct session."""
        if self._quiet and self._leave is None:
            return
        reports = [message.payload for message in acknowledged if message.topic == Topic.MEMBERSHIP]
        if reports:
            self._handle(Reached(peer.number, max(decode_report(report).version for report in reports)))

    def joined(self, record: WorkerRecord) -> None:
        """Take a worker that joins a dynamic group into account, unless it is known."""
        with self._lock:
            if record.number in self._peers:
                return
            machine = self._machine()  # before ``add``: made of the workers that were known so far
            self._peers.add(record)
            self._add(machine.handle(MemberJoined(record.number), self._timers.now()))
        for handler in self.on_joined:
            handler(self._peers.at(record.number))
        self._due.run()

    def left(self, peer: Peer, reason: str, agreed: bool, report: bytes) -> None:
        """Note that ``peer`` said goodbye.

        Args:
            peer: the worker that leaves.
            reason: the reason that it gave.
            agreed: whether it leaves in a shutdown of all workers.
            report: its ``last_report``.
        """
        if agreed:
            for handler in self.on_agreed:
                handler(peer)
        if self._state.leaving:
            self._remove(peer, reason)
        else:
            self._handle(MemberLeft(peer.number, reason, decode_report(report)))

    def ask_to_leave(self) -> Future[None]:
        """Tell another worker that this one leaves alone; the future completes when that knows it, or there is no other."""
        self._leave = leave = Future[None]()
        self._handle(LeaveAsked())
        return leave

    def watch(self) -> None:
        """Do what follows from the time that has passed, and set the alarm for the next such time."""
        now = self._timers.now()
        self._give(TimePassed(), now)
        with self._lock:
            due = self._machine().due(now)
        self._alarm.set(due)
        self._due.run()
        self._update_cuts(now)

    def last_report(self) -> bytes:
        """Return this worker's report, for its goodbye: the latest may not have arrived everywhere."""
        with self._lock:
            return b"" if self._made is None else encode_report(self._made.report)

    def next_hop(self, number: int) -> int | None:
        """Return the worker that passes frames on to the worker of a number, while the link to that is cut."""
        with self._lock:
            return self._machine().next_hop(number)

    def _received(self, sender: Peer, payload: bytes) -> None:
        self._handle(ReportReceived(sender.number, decode_report(payload)))

    # -- the machine

    def _machine(self) -> Verdicts:
        # lock held; made when first needed, because the workers are not known before
        if self._made is None:
            self._made = Verdicts(self._state.number, self._peers.numbers(), self._peers.name, self._timeout)
        return self._made

    def _handle(self, event: Event) -> None:
        self._give(event, self._timers.now())
        self._due.run()
        self._update_cuts(None)

    def _give(self, event: Event, now: float) -> None:
        with self._lock:
            machine = self._machine()
            self._add(machine.handle(event, now))
            self._quiet = machine.quiet
            due = None if self._quiet else machine.due(now)
        if due is not None:
            self._alarm.set(due)

    def _add(self, instructions: list[Instruction]) -> None:
        # lock held
        self._due.add(*(partial(self._do, instruction) for instruction in instructions))

    def _do(self, instruction: Instruction) -> None:
        if isinstance(instruction, Lose):
            self._lose(self._peers.at(instruction.number), instruction.loss)
        elif isinstance(instruction, CloseAgent):
            self._close(instruction.reason)
        elif isinstance(instruction, LeaveGranted):
            assert self._leave is not None
            complete_once(self._leave)
        elif not self._state.leaving:
            self._send_report(instruction)

    def _send_report(self, instruction: SendReport) -> None:
        payload = encode_report(instruction.report)
        for number in instruction.to:
            peer = self._peers.at(number)
            if not peer.gone:
                self._control.post(peer, Topic.MEMBERSHIP, payload)

    # -- verdicts

    def _lose(self, peer: Peer, loss: Loss) -> None:
        told = not loss.left and not self._state.leaving
        if told:
            _tell_of(peer, loss.reason)
        self._remove(peer, loss.reason)
        for handler in self.on_told if told else ():
            handler(peer, loss.reason)

    def _remove(self, peer: Peer, reason: str) -> None:
        """Count this incarnation of the worker as gone, for good."""
        if not self._peers.mark_gone(peer, reason):
            return
        for session in peer.sessions():
            session.close(expelled(reason))
        for handler in self.on_lost:
            handler(peer)
        self._control.flush_drained()

    def expelled(self, peer: Peer, reason: str) -> None:
        """Close this worker, because ``peer`` says that this worker is lost."""
        if not self._state.leaving:
            self._close(f"worker {peer.info.name!r} counts it as lost ({reason})")

    def _close(self, reason: str) -> None:
        if self._state.closed:
            return
        reason = f"it was expelled from its job: {reason}"
        logger.error("worker %r closes: %s", self._state.name, reason)
        self._expel(reason)

    # -- cut links

    def _update_cuts(self, now: float | None) -> None:
        for peer in list(self._troubled):
            if peer.suspicion.trouble is None:
                self._troubled.pop(peer, None)
            self._update_cut(peer, now)

    def _update_cut(self, peer: Peer, now: float | None) -> None:
        """Fail the calls over a link that is known to be cut; if that is not known yet, look again later.

        Args:
            peer: the worker at the other end.
            now: the time, if the machine has handled it already; ``None`` if not.
        """
        trouble, accepted = peer.suspicion.trouble, peer.link.accepted
        if trouble is None or peer.link.state in (LinkState.GONE, LinkState.CUT):
            return
        # A session that is open for two keepalives has answered one. Before that, its end may not have been noticed.
        # Time in which this process was suspended does not count: no keepalive was sent or answered.
        answered = max(trouble.since, self._awake_since()) + 2 * self._keepalive
        # Another worker that is asked now may have no session. It dials for two keepalives, then as often as it takes until
        # the peer has been silent for the timeout: the last dial may begin just before that. One more keepalive for pauses.
        until = answered if accepted else answered + 3 * self._keepalive + self._timeout
        if (witness := self._witness(peer)) is not None:
            alive = f"worker {witness!r} reaches it"
        elif now is None or now < until:
            self._alarm.set(until)
            return
        elif accepted:
            alive = f"it is connected to worker {self._state.name!r}"
        else:
            alive = "no worker knows whether it is alive"
        # With this worker's name, because the error may travel to other workers, whose users must see which link is cut.
        reason = f"{trouble.evidence.reason}, says worker {self._state.name!r}, but {alive}"
        if not peer.cut_off(reason, self._timers.now()):
            return  # it opened or ended meanwhile
        logger.warning("the link of worker %r to worker %r is cut: %s", self._state.name, peer.info.name, reason)
        for handler in self.on_cut:
            handler(peer)

    def _awake_since(self) -> float:
        with self._lock:
            return self._machine().awake_since

    def _witness(self, peer: Peer) -> str | None:
        with self._lock:
            number = self._machine().witness(peer.number)
        return None if number is None else self._peers.at(number).info.name


def _tell_of(peer: Peer, reason: str) -> None:
    """Tell the user of a loss. A launcher hears of it from all workers, and tells it once, unless it saw the process exit."""
    launcher = reporter()
    level = logging.INFO if launcher else logging.WARNING
    logger.log(level, "worker %r (rank %d) is lost: %s", peer.info.name, peer.info.id, reason)
    if launcher:
        launcher.lost(peer.info.name, reason)
