"""``RRefContext``: drives the ownership machine of one agent.

Events go into the machine under a lock; its instructions are carried out outside of it. The machine's tables are the only ones:
a fork and an owned reference each have one record, which also holds what their driver needs. Handles that die are dropped by
the agent's I/O loop, for a finalizer may do nothing but put an action into the agent's queue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..core.errors import AgentClosedError, RpcError, WorkerLostError
from ..core.futures import Future, complete_once, run_callbacks
from ..rpc.extend import Agent, Peer
from . import protocol as p
from .encoding import decode_message, encode_message
from .forks import Fork
from .ids import ForkId, RRefId, WorkerKey
from .numbers import Topic
from .owner_table import Owned
from .ownership import Ownership

T = TypeVar("T")
Backward = Callable[[Any, int, bool], None]
# Of the extra in which a message's references travel, and of the note about it at the sender.
NUMBER = 1


class Creation:
    """What ``remote`` learns from the message that it sent: filled by the interceptor."""

    __slots__ = ("fork",)

    def __init__(self) -> None:
        self.fork: Fork | None = None


class RRefContext:
    """The references of one agent.

    Args:
        agent: the agent.
        backward: differentiates from a reference: ``backward(reference, context id, retain graph)``. It belongs to a higher
            layer, distributed autograd.
    """

    def __init__(self, agent: Agent, backward: Backward) -> None:
        self.agent = agent
        self.backward = backward
        self.me = WorkerKey(agent.rank, agent.record.incarnation)
        self._ownership = Ownership(self.me, self._name_of)
        self._lock = threading.Lock()
        agent.courier.on(Topic.OWNERSHIP, self._told)
        agent.membership.on_lost.append(self._lost)
        agent.membership.on_broken.append(self._broken)
        agent.on_close.append(self._close)
        agent.debug_sections["references"] = self._counts

    # -- references made or sent here

    def own(self, value: Any) -> Fork:
        """A new reference to a value of this worker."""
        future: Future[Any] = Future()
        future.set_result(value)

        def event() -> Fork:
            rref_id, fork_id = self._ownership.own()
            owned = self._ownership.owned(rref_id)
            assert owned is not None
            owned.value = future
            return self._fork(fork_id)

        return self._step(event)

    def create(self, owner: WorkerKey, references: Sequence[Fork]) -> tuple[Fork, p.Carrier]:
        """A new reference whose value ``owner`` will make, and the carrier of the call that asks for it."""

        def event() -> tuple[Fork, p.Carrier]:
            _, fork_id, carrier = self._ownership.create(owner, _pairs(references))
            return self._fork(fork_id), carrier

        return self._step(event)

    def outgoing(self, to: WorkerKey, references: Sequence[Fork]) -> p.Carrier:
        """The carrier of a message with these references."""
        return self._step(lambda: self._ownership.outgoing(to, _pairs(references)))

    def incoming(self, sender: WorkerKey, number: int, entries: list[p.Entry]) -> list[Fork] | None:
        """Adopt the references of a message that arrived; ``None``: the message is void, ignore it."""
        return self._step(lambda: self._ownership.incoming(sender, number, entries))

    def delivered(self, carrier: p.Carrier) -> None:
        """The message of a carrier arrived; if it was a creation, the owner has the reference."""
        self._step(lambda: self._ownership.delivered(carrier.to, carrier.number))

    def not_delivered(self, carrier: p.Carrier) -> None:
        """The message of a carrier was not sent, or nobody knows whether it arrived."""
        self._step(lambda: self._ownership.not_delivered(carrier.to, carrier.number))

    def creation_answered(self, fork: Fork, error: BaseException | None) -> None:
        """The request of ``remote`` ended: with an error, every use of the reference raises it."""
        if error is None:
            complete_once(fork.settled)
            return
        self._settle(fork, error)
        with self._lock:
            owned = self._ownership.owned(fork.rref_id)
            future = None if owned is None else self._value_of(owned)
        if future is not None:  # we are the owner, and nobody is going to make the value
            complete_once(future, error=error)

    def drop(self, fork_id: ForkId) -> None:
        """A handle is gone; saying it again does nothing."""
        self._step(lambda: self._ownership.dropped(fork_id))

    # -- values

    def is_owned(self, rref_id: RRefId) -> bool:
        """Whether somebody still refers to this value of ours."""
        with self._lock:
            return self._ownership.owned(rref_id) is not None

    def value(self, rref_id: RRefId, asker: WorkerKey) -> Future[Any]:
        """The future of a value of this worker, also if its creation is still on the way.

        Raises:
            RpcError: there is no such value, and none will come.
        """
        with self._lock:
            owned = self._ownership.awaited(rref_id, asker)
            if owned is not None:
                return self._value_of(owned)
        raise RpcError(f"worker {self.agent.name!r} has no value for RRef {rref_id} any more; keep a reference to it")

    # -- the machine

    def _step(self, event: Callable[[], T]) -> T:
        with self._lock:
            result = event()
            instructions = self._ownership.take()
        for instruction in instructions:
            self._carry_out(instruction)
        return result

    def _carry_out(self, instruction: p.Instruction) -> None:
        match instruction:
            case p.Send(to, message):
                self.agent.courier.post(self.agent.peers.at(to.rank), Topic.OWNERSHIP, encode_message(message))
            case p.Free():
                self._free(instruction)
            case p.Confirmed(fork_id):
                fork = self._ownership.fork(fork_id)
                if fork is not None and not fork.creating:  # that one is settled by the answer to its call
                    self._settle(fork)
            case p.Fail(fork_id, reason, lost):
                fork = self._ownership.fork(fork_id)
                if fork is not None:  # else it was dropped meanwhile
                    self._settle(fork, self._error(reason, lost))
            case p.NeverCreated(rref_id, future):
                if future is not None:
                    self._complete(
                        future, RpcError(f"RRef {rref_id} was never created: the call of remote() did not arrive")
                    )

    def _settle(self, fork: Fork, error: BaseException | None = None) -> None:
        if error is not None and fork.error is None:
            fork.error = error
        self._complete(fork.settled)

    def _complete(self, future: Future[Any], error: BaseException | None = None) -> None:
        """Complete a future that others may complete too; callbacks are user code, and run in a thread made for that."""
        if callbacks := future.try_finish(None, error):
            self.agent.run_later(lambda: run_callbacks(callbacks))

    def _error(self, reason: str, lost: WorkerKey | None) -> Exception:
        return RpcError(reason) if lost is None else WorkerLostError(reason, self._worker(lost))

    def _free(self, instruction: p.Free) -> None:
        doomed, instruction.value = [instruction.value], None
        self.agent.run_later(lambda: self.agent.new_context().run(doomed.clear))  # its destructor is user code

    # -- events

    def _told(self, peer: Peer, payload: bytes) -> None:
        message = decode_message(payload)
        self._step(lambda: self._ownership.receive(_key(peer), message))

    def _lost(self, peer: Peer) -> None:
        self._step(lambda: self._ownership.worker_lost(_key(peer)))

    def _broken(self, peer: Peer) -> None:
        self._step(lambda: self._ownership.connection_broke(_key(peer)))

    def _counts(self) -> dict[str, int]:
        self.agent.timers.run_soon()
        with self._lock:
            return self._ownership.counts()

    def _close(self) -> None:
        with self._lock:
            forks, owned = self._ownership.close()
        error = AgentClosedError(f"worker {self.agent.name!r} was closed while this reference was awaited")
        for fork in forks:
            self._settle(fork, error)
        for each in owned:
            if each.value is not None:
                self._complete(each.value, error)

    # -- small parts

    def _fork(self, fork_id: ForkId) -> Fork:
        # lock held, and the machine has just made it
        fork = self._ownership.fork(fork_id)
        assert fork is not None
        return fork

    def _value_of(self, owned: Owned) -> Future[Any]:
        # lock held
        if owned.value is None:
            owned.value = Future()
        return owned.value

    def _worker(self, key: WorkerKey) -> str:
        return self.agent.peers.at(key.rank).info.name

    def _name_of(self, key: WorkerKey) -> str:
        return f"worker {self._worker(key)!r}"


def _pairs(references: Sequence[Fork]) -> list[tuple[RRefId, ForkId]]:
    return [(fork.rref_id, fork.fork_id) for fork in references]


def _key(peer: Peer) -> WorkerKey:
    return WorkerKey(peer.info.id, peer.record.incarnation)
