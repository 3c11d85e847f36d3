"""``RRefContext``: drives the ownership machine of one agent, and keeps the values that this worker owns.

Events go into the machine under a lock; its instructions are carried out outside of it. Handles that die put their id into a
``SimpleQueue``, which is all that a finalizer may do; one thread drains it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ..core.errors import AgentClosedError, RpcError, WorkerLostError
from ..core.futures import Future, complete_once, copy_error
from ..rpc.extend import Agent, Peer, Topic
from . import protocol as p
from .encoding import decode_message, encode_message
from .ids import ForkId, RRefId, WorkerKey
from .ownership import Ownership

T = TypeVar("T")


class Handle:
    """What is known about one fork held here; the ``RRef`` object points to it, never the other way round."""

    __slots__ = ("answer", "confirmed", "creating", "fork_id", "owner", "rref_id")

    def __init__(self, rref_id: RRefId, fork_id: ForkId, owner: WorkerKey, creating: bool = False) -> None:
        self.rref_id = rref_id
        self.fork_id = fork_id
        self.owner = owner
        self.creating = creating  # made by remote() here: may fetch before the owner answered
        self.answer: Future[Any] | None = None  # to the creating call
        self.confirmed: Future[None] = Future()  # or failed: then every use of the reference raises that

    def check(self) -> None:
        """Raise if the reference is known to be void."""
        if self.confirmed.done() and (error := self.confirmed.exception()) is not None:
            raise copy_error(error)

    def creation_error(self) -> BaseException | None:
        """Why the creating call failed, if it did: that counts, even if the owner turns out to have received it."""
        return self.answer.exception() if self.answer is not None and self.answer.done() else None


class RRefContext:
    """The references of one agent."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.me = WorkerKey(agent.rank, agent.record.incarnation)
        self.drops: SimpleQueue[ForkId | None] = SimpleQueue()
        self._ownership = Ownership(self.me, self._name_of)
        self._lock = threading.Lock()
        self._handles: dict[ForkId, Handle] = {}
        self._values: dict[RRefId, Future[Any]] = {}
        self._drainer: threading.Thread | None = None
        agent.courier.on(Topic.OWNERSHIP, self._told)
        agent.membership.on_lost.append(self._lost)
        agent.membership.on_broken.append(self._broken)
        agent.on_close.append(self._close)
        agent.debug_sections["references"] = self._counts

    # -- references made or sent here

    def own(self, value: Any) -> Handle:
        """A new reference to a value of this worker."""
        rref_id, fork_id = self._step(self._ownership.own)
        future: Future[Any] = Future()
        future.set_result(value)
        self._values[rref_id] = future
        return self._add_handle(Handle(rref_id, fork_id, self.me))

    def create(self, owner: WorkerKey, references: Sequence[Handle]) -> tuple[Handle, p.Carrier]:
        """A new reference whose value ``owner`` will make, and the carrier of the call that asks for it."""
        pairs = [(handle.rref_id, handle.fork_id) for handle in references]
        rref_id, fork_id, carrier = self._step(lambda: self._ownership.create(owner, pairs))
        if owner == self.me:
            self._values[rref_id] = Future()
        return self._add_handle(Handle(rref_id, fork_id, owner, creating=True)), carrier

    def outgoing(self, to: WorkerKey, references: Sequence[Handle]) -> p.Carrier:
        """The carrier of a message with these references."""
        pairs = [(handle.rref_id, handle.fork_id) for handle in references]
        return self._step(lambda: self._ownership.outgoing(to, pairs))

    def incoming(self, sender: WorkerKey, number: int, entries: list[p.Entry]) -> list[Handle] | None:
        """Adopt the references of a message that arrived; ``None``: the message is void, ignore it."""
        handles = [
            Handle(entry.rref_id, entry.fork_id, entry.owner) for entry in entries if entry.how is not p.How.CREATED
        ]
        with self._lock:
            for entry in entries:
                if entry.how is p.How.CREATED:
                    self._values.setdefault(entry.rref_id, Future())
            # Before the machine speaks of them: its instructions look them up.
            self._handles.update((handle.fork_id, handle) for handle in handles)
            adopted = self._ownership.incoming(sender, number, entries)
            instructions = self._ownership.take()
        self._carry_out(instructions)
        if not adopted:
            return None
        self._start_drainer()
        return handles

    def delivered(self, carrier: p.Carrier) -> None:
        """The message of a carrier arrived; if it was a creation, the owner has the reference."""
        self._step(lambda: self._ownership.delivered(carrier.to, carrier.number))
        for entry in carrier.entries:
            if entry.how is p.How.CREATED:
                self._step(lambda fork_id=entry.fork_id: self._ownership.confirmed(fork_id))  # type: ignore[misc]

    def creation_answered(self, handle: Handle, error: BaseException | None) -> None:
        """The request of ``remote`` ended: with an error, every use of the reference raises it."""
        if error is not None:
            complete_once(handle.confirmed, error=error)

    def not_delivered(self, carrier: p.Carrier) -> None:
        """The message of a carrier was not sent, or nobody knows whether it arrived."""
        self._step(lambda: self._ownership.not_delivered(carrier.to, carrier.number))

    # -- values

    def is_owned(self, rref_id: RRefId) -> bool:
        """Whether somebody still refers to this value of ours."""
        return rref_id in self._values

    def value(self, rref_id: RRefId, asker: WorkerKey) -> Future[Any]:
        """The future of a value of this worker, also if its creation is still on the way.

        Raises:
            RpcError: there is no such value, and none will come.
        """
        with self._lock:
            future = self._values.get(rref_id)
            if future is None and self._ownership.may_park(rref_id, asker):
                future = self._values[rref_id] = Future()
        if future is None:
            raise RpcError(
                f"worker {self.agent.name!r} has no value for RRef {rref_id} any more; keep a reference to it"
            )
        return future

    # -- the machine

    def _step(self, event: Callable[[], T]) -> T:
        with self._lock:
            result = event()
            instructions = self._ownership.take()
        self._carry_out(instructions)
        return result

    def _carry_out(self, instructions: list[p.Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case p.Send(to, message):
                    self.agent.courier.post(self.agent.peers.at(to.rank), Topic.OWNERSHIP, encode_message(message))
                case p.Free(rref_id):
                    self._free(rref_id)
                case p.Confirmed(fork_id):
                    self._settle(fork_id, None)
                case p.Fail(fork_id, reason, lost):
                    self._settle(fork_id, self._error(reason, lost))
                case p.NeverCreated(rref_id):
                    self._never_created(rref_id)

    def _settle(self, fork_id: ForkId, error: Exception | None) -> None:
        handle = self._handles.get(fork_id)
        if handle is None:
            return
        if handle.confirmed.done():
            if error is None:
                return
            handle.confirmed = Future()  # it was confirmed, and is void now
        future = handle.confirmed
        self.agent.run_later(lambda: complete_once(future, error=error or handle.creation_error()))

    def _error(self, reason: str, lost: WorkerKey | None) -> Exception:
        return RpcError(reason) if lost is None else WorkerLostError(reason, self._worker(lost))

    def _free(self, rref_id: RRefId) -> None:
        doomed = [self._values.pop(rref_id, None)]
        self.agent.run_later(lambda: self.agent.new_context().run(doomed.clear))  # its destructor is user code

    def _never_created(self, rref_id: RRefId) -> None:
        future = self._values.pop(rref_id, None)
        if future is not None:
            error = RpcError(f"RRef {rref_id} was never created: the call of remote() did not arrive")
            self.agent.run_later(lambda: complete_once(future, error=error))

    # -- events

    def _told(self, peer: Peer, payload: bytes) -> None:
        message = decode_message(payload)
        self._step(lambda: self._ownership.receive(_key(peer), message))

    def _lost(self, peer: Peer) -> None:
        self._step(lambda: self._ownership.worker_lost(_key(peer)))

    def _broken(self, peer: Peer) -> None:
        self._step(lambda: self._ownership.connection_broke(_key(peer)))

    def _add_handle(self, handle: Handle) -> Handle:
        self._handles[handle.fork_id] = handle
        self._start_drainer()
        return handle

    def _start_drainer(self) -> None:
        if self._drainer is None:
            with self._lock:
                if self._drainer is not None or self.agent.closed:
                    return
                name = f"telegrad-{self.agent.name}-references"
                drainer = threading.Thread(target=self._drain, name=name, daemon=True)
                drainer.start()  # before anybody can see it, for who closes joins it
                self._drainer = drainer

    def _drain(self) -> None:
        while (fork_id := self.drops.get()) is not None:
            self._drop(fork_id)

    def _drain_some(self) -> None:
        """Drop what waits, without waiting; the end's mark is the drainer's."""
        try:
            while (fork_id := self.drops.get_nowait()) is not None:
                self._drop(fork_id)
            self.drops.put(None)
        except Empty:
            pass

    def _drop(self, fork_id: ForkId) -> None:
        self._handles.pop(fork_id, None)
        self._step(lambda: self._ownership.dropped(fork_id))

    def _counts(self) -> dict[str, int]:
        self._drain_some()
        with self._lock:
            return {**self._ownership.counts(), "handles": len(self._handles), "values": len(self._values)}

    def _close(self) -> None:
        self.drops.put(None)
        if self._drainer is not None and self._drainer is not threading.current_thread():
            self._drainer.join()
        with self._lock:
            self._ownership.close()
            values, self._values = list(self._values.values()), {}
            handles, self._handles = list(self._handles.values()), {}
        error = AgentClosedError(f"worker {self.agent.name!r} was closed while this reference was awaited")
        for future in values + [handle.confirmed for handle in handles]:
            complete_once(future, error=error)

    def _worker(self, key: WorkerKey) -> str:
        return self.agent.peers.at(key.rank).info.name

    def _name_of(self, key: WorkerKey) -> str:
        return f"worker {self._worker(key)!r}"


def _key(peer: Peer) -> WorkerKey:
    return WorkerKey(peer.info.id, peer.record.incarnation)
