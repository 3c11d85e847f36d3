"""Dynamic group: a job without a fixed world size, which workers join and leave while it runs. The driver of its admissions.

A group in a file has no host (``logged_group.py``). In others rank 0 admits newcomers and tells the other workers of them.
It stays connected to each worker, so that a death is noticed.
A worker that leaves says goodbye; the workers that receive the goodbye report it to the others, like a loss (``verdict.py``).
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from ...base.errors import AgentClosedError, RendezvousError
from ...core.futures import Future, complete_once
from ...proto.rpc_pb2 import GroupMessage, WorkerRecord
from ..rendezvous.group_members import GOODBYE_SECONDS
from ..wire.messages import Topic
from .admissions import Admissions, Event, Gone, Instruction, JoinAsked, Known, Tell

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.peer import Peer

HOLDER_LOOK_SECONDS = 0.02


class DynamicGroup:
    """Part of an agent that handles joins of other workers: rank 0 admits them, the others take them as members."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._made: Admissions | None = None
        self._admitted: dict[int, Future[None]] = {}  # by number of a newcomer: completes when it is admitted
        agent.control.on(Topic.GROUP, self._received)
        agent.losses.on_lost.append(self._lost)
        agent.on_close.append(self._on_close)

    # -- at rank 0

    async def admit(self, worker: WorkerRecord) -> list[WorkerRecord]:
        """Let a worker join, and return the records of all members once these know it. Runs on the I/O loop.

        Raises:
            RendezvousError: a live member has its name or rank, or it was lost meanwhile.
            AgentClosedError: this agent was closed.
        """
        await self._until_free(worker)
        admitted = self._ask(worker)
        try:
            await admitted
        finally:
            # Without a session to it its death would not be noticed. It may be dead already.
            self._dial(worker)
        with self._lock:
            return self._admissions().members.records()

    async def _until_free(self, worker: WorkerRecord) -> None:
        """Wait while another member has the worker's name or rank and does not answer, or may be about to say goodbye."""
        late = self._agent.timers.now() + GOODBYE_SECONDS
        while (holder := self._holder(worker)) is not None:
            peer = self._agent.peers.at(holder.number)
            if peer.number == self._agent.number or (peer.linked and self._agent.timers.now() > late):
                return  # ``Admissions`` raises the error
            self._agent.sessions.dial_missing(peer)
            await asyncio.sleep(HOLDER_LOOK_SECONDS)

    def _holder(self, worker: WorkerRecord) -> WorkerRecord | None:
        with self._lock:
            return self._admissions().members.holder(worker)

    def _ask(self, worker: WorkerRecord) -> Future[None]:
        self._agent.state.check_open()
        with self._lock:
            admissions = self._admissions()
            instructions = admissions.handle(JoinAsked(worker))
            number = admissions.members.number_of(worker)
            assert number is not None
            admitted = self._admitted.setdefault(number, Future())
        if number not in self._agent.peers:
            self._agent.losses.joined(worker)
        self._carry_out(instructions)
        return admitted

    def _dial(self, worker: WorkerRecord) -> None:
        peer = self._agent.peers.at(worker.number) if worker.number in self._agent.peers else None
        if peer is not None and not (peer.gone or self._agent.closed):
            self._agent.sessions.dial_missing(peer)

    def _admissions(self) -> Admissions:
        # lock held; made when first needed, because this worker has no address before
        if self._made is None:
            self._made = Admissions(self._agent.record)
        return self._made

    def _handle(self, event: Event) -> None:
        with self._lock:
            instructions = self._admissions().handle(event)
        self._carry_out(instructions)

    def _carry_out(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Tell):
                told = GroupMessage(joined=instruction.worker)
                self._post(self._agent.peers.at(instruction.to), told)
            else:
                self._end(instruction.number)

    def _end(self, number: int, error: Exception | None = None) -> None:
        with self._lock:
            waiting = self._admitted.pop(number, None)
        if waiting is not None:
            complete_once(waiting, error=error)

    def _lost(self, peer: Peer) -> None:
        if not self._admits():
            return
        lost = f"worker {peer.info.name!r} was counted as lost while it joined ({peer.gone}); start it again"
        self._end(peer.number, RendezvousError(lost))
        self._handle(Gone(peer.number))

    def _admits(self) -> bool:
        with self._lock:
            return self._made is not None

    def _on_close(self) -> None:
        with self._lock:
            waiting = list(self._admitted)
        for number in waiting:
            self._end(
                number, AgentClosedError(f"worker {self._agent.name!r} has left the group, which others join at it")
            )

    # -- at all workers

    def _received(self, sender: Peer, payload: bytes) -> None:
        message = GroupMessage.FromString(payload)
        if message.HasField("joined"):
            self._agent.losses.joined(message.joined)
            self._post(sender, GroupMessage(known=message.joined.number))
        else:
            self._handle(Known(sender.number, message.known))

    def _post(self, peer: Peer, message: GroupMessage) -> None:
        if not peer.gone:
            self._agent.control.post(peer, Topic.GROUP, message.SerializeToString())
