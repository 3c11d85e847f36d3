"""``RRefContext``: drives the ownership machine of one agent.

The machine gets events under a lock, and its instructions are carried out without the lock. There are no other tables than
the machine's: a fork and an owned reference each have one record, which also has fields for the driver. A finalizer may only
put the fork into ``dropped``. The agent's I/O loop then drops it, together with all others of the same millisecond.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..base.errors import AgentClosedError, RpcError, WorkerLostError
from ..core.futures import Future, copy_outcome, free, run_callbacks
from ..rpc.extend import Agent, Batch, Peer, Session
from . import protocol as p
from .forks import Fork
from .ids import ForkId, RRefId, WorkerKey
from .leaks import LeakReport
from .numbers import ReferenceTopic
from .owner_table import Owned
from .ownership import Ownership
from .plain import frees_quietly
from .transfers import session_of

if TYPE_CHECKING:
    from .places import CreationPlaces

logger = logging.getLogger("telegrad.rref")
Backward = Callable[[Any, int, bool], None]
# Number of the extra in which a message's references travel, and of the note about them at the sender.
REFERENCE_EXTRA = 1
UNHURRIED = {p.Register, p.Accept, p.Acknowledge, p.Delete}  # no thread waits for these: they only let values go
HEAR_SECONDS = 0.1  # between two looks whether this worker has heard of one that joins
PLACES_VARIABLE = "TELEGRAD_RREF_PLACES"


class RRefContext:
    """The references of one agent.

    Args:
        agent: the agent.
        backward: runs backward from a reference: ``backward(reference, context id, retain graph)``. It belongs to a higher
            layer, distributed autograd.
        ignore_leaks: do not report references that other workers hold at shutdown.
        records_places: record where the program makes references.

    Attributes:
        places: where the program made references; None if this is not recorded.
        dropped: takes forks whose ``RRef`` is gone.
    """

    def __init__(
        self, agent: Agent, backward: Backward, ignore_leaks: bool = False, records_places: bool = False
    ) -> None:
        self.agent = agent
        self.backward = backward
        self.me = WorkerKey(agent.number, agent.record.incarnation)
        self.ownership = Ownership(self.me, self._name_of, self.is_gone)
        self.dropped: Batch[Fork] = agent.timers.together(self._drop)
        self.places = self._new_places() if records_places else None
        self._lock = threading.Lock()
        self._ignore_leaks = ignore_leaks
        self._leaks = LeakReport()
        agent.control.on(ReferenceTopic.OWNERSHIP, self._on_message)
        agent.losses.on_lost.append(self._on_lost)
        agent.on_leave.append(self._report_leaks)
        agent.sessions.on_broken.append(self._on_broken)
        agent.on_close.append(self._on_close)
        agent.debug_sections["references"] = self._counts
        agent.debug_counts.append(self._pytorch_counts)

    def _new_places(self) -> CreationPlaces:
        from .places import CreationPlaces  # here: few programs want them

        return CreationPlaces(self._known)

    def key(self, number: int) -> WorkerKey:
        """Return the key of the worker of that number."""
        return WorkerKey(number, self.agent.peers.at(number).record.incarnation)

    # -- references made, sent and dropped here

    def own(self, value: Any) -> Fork:
        """Return the first fork of a new reference to a value of this worker."""
        future: Future[Any] = Future()
        future.set_result(value)
        with self._lock:
            fork = self.ownership.own(future)
        if self.places is not None:
            self.places.note(fork.rref_id)
        return fork

    def own_outcome(self, future: Future[Any]) -> Fork:
        """Return the first fork of a new reference to what a future of this worker will be."""
        value: Future[Any] = Future()
        future.add_done_callback(partial(copy_outcome, target=value))
        with self._lock:
            return self.ownership.own(value)

    def creation_ended(self, fork: Fork, error: BaseException | None) -> None:
        """Note that the creating call of a fork has ended.

        If it failed, every use of the reference raises ``error``. So the fork is dropped now, although its ``RRef`` is still
        there: else the owner would keep a value that its function made too late.
        """
        self._settle(fork, error)
        fork.call = None  # last: a fork without a call has its error, if there is one
        if error is not None:
            self.dropped.add(fork)

    def _drop(self, forks: list[Fork]) -> None:
        self.handle(*map(p.Dropped, forks))

    # -- values

    def value(self, rref_id: RRefId, unconfirmed: ForkId | None = None) -> Future[Any]:
        """Return the future of a value of this worker, also if its creating call has not arrived yet.

        Args:
            rref_id: the reference.
            unconfirmed: the fork of the worker that asks, if it has another user's fork and no answer about it yet.

        Raises:
            RpcError: there is no such value, and there will be none.
        """
        with self._lock:
            if (value := self.ownership.owned.value(rref_id)) is not None:
                return value
            if self.ownership.owned.was_not_created(rref_id):
                raise self._not_created(rref_id)
            if unconfirmed is not None:
                raise RpcError(self.ownership.why_gone(rref_id, unconfirmed))
        raise RpcError(f"worker {self.agent.name!r} has no value for RRef {rref_id} any more; keep a reference to it")

    def _not_created(self, rref_id: RRefId) -> RpcError:
        return RpcError(
            f"RRef {rref_id} of worker {self.agent.name!r} was never created: remote() did not arrive there"
        )

    # -- the machine

    def handle(self, *events: p.Event) -> None:
        """Give events to the machine, and carry its instructions out."""
        instructions: list[p.Instruction] = []
        problem: Exception | None = None
        with self._lock:
            for event in events:
                try:
                    instructions += self.ownership.handle(event)
                except Exception as error:  # the other events are handled nevertheless
                    problem = error
        if instructions:
            self._carry_out(instructions)
        if problem is not None:
            try:
                raise problem
            finally:
                del problem  # the error's traceback refers to this frame

    def _carry_out(self, instructions: Iterable[p.Instruction]) -> None:
        """Carry instructions out. All messages to one worker leave together, and all values are freed together."""
        messages: dict[WorkerKey, list[p.Message]] = {}
        freed: list[Any] = []
        for instruction in instructions:
            match instruction:
                case p.Send(to, message):
                    messages.setdefault(to, []).append(message)
                case p.Free():
                    freed.append(instruction.value)
                    instruction.value = None
                case _:
                    self._tell(instruction)
        for to, its in messages.items():
            self._post(to.number, p.encode_messages(its), not all(type(message) in UNHURRIED for message in its))
        if not all(map(frees_quietly, freed)):
            self.agent.threads.run_later(partial(self._clear, freed))

    def _post(self, number: int, messages: bytes, hurried: bool) -> None:
        """Send control messages to a worker: to one that joins, when this worker has heard of it."""
        if self.agent.peers.heard_of(number):
            self.agent.control.post(self.agent.peers.at(number), ReferenceTopic.OWNERSHIP, messages, hurried)
        else:
            self.agent.timers.after(HEAR_SECONDS, self._post, number, messages, hurried)

    def _tell(self, instruction: p.Confirmed | p.ForkFailed | p.NeverCreated | p.NeverMade) -> None:
        match instruction:
            case p.Confirmed(fork):
                if not fork.created_here:  # else the end of its creating call settles it
                    self._settle(fork)
            case p.ForkFailed(fork, reason, lost):
                self._fail(fork, RpcError(reason) if lost is None else WorkerLostError(reason, self.worker(lost)))
            case p.NeverCreated(rref_id, future) | p.NeverMade(rref_id, future):
                if future is not None:
                    self._complete(future, self._not_created(rref_id))

    def _fail(self, fork: Fork, error: Exception) -> None:
        if fork.call is not None:
            self.agent.caller.give_up(fork.call, error)
        self._settle(fork, error)

    def _settle(self, fork: Fork, error: BaseException | None = None) -> None:
        if error is not None and fork.error is None:
            fork.error = error
        self._complete(fork.settled)

    def _complete(self, future: Future[Any], error: BaseException | None = None) -> None:
        # Other threads may complete it too. Callbacks are user code, and run in a thread for callbacks.
        if callbacks := future.try_finish(None, error):
            self.agent.threads.run_later(lambda: run_callbacks(callbacks))

    def _clear(self, freed: list[Any]) -> None:
        self.agent.new_context().run(free, freed)

    # -- events of the agent

    def _on_message(self, peer: Peer, payload: bytes) -> None:
        sender = key_of(peer)
        self.handle(*[p.Received(sender, message) for message in p.decode_messages(payload)])

    def _on_lost(self, peer: Peer) -> None:
        if self.agent.state.leaving:  # it left before this worker, and did not die
            self._note_leaks(peer)
        self.handle(p.WorkerLost(key_of(peer)))

    def _on_broken(self, peer: Peer, session: Session) -> None:
        """Ask whether the transfers arrived that went by a session which broke: answers, and creating calls.

        Other calls fail when the link is open again or lost, and their transfers with them. What goes by another session
        is left alone: a cancel may overtake it.
        """
        with self._lock:
            sent = self.ownership.transfers.open_to(key_of(peer))
        self.handle(*[p.NotDelivered(transfer) for transfer in sent if session_of(transfer) is session])

    def _on_close(self) -> None:
        with self._lock:
            forks, owned = self.ownership.clear()
        error = AgentClosedError(f"worker {self.agent.name!r} was closed while this reference was awaited")
        for fork in forks:
            self._settle(fork, error)
        for each in owned:
            if each.value is not None:
                self._complete(each.value, error)

    def _note_leaks(self, peer: Peer) -> None:
        with self._lock:
            owned = self.ownership.owned.held_by(key_of(peer))
        self._leaks.add(peer.info.name, owned)

    def _report_leaks(self) -> None:
        with self._lock:
            holders = self.ownership.owned.holders()
        for peer in [self.agent.peers.at(holder.number) for holder in holders - {self.me}]:
            if not peer.gone:
                self._note_leaks(peer)
        if not self._ignore_leaks and (text := self._leaks.text(self.agent.name)):
            logger.warning("%s", text)

    def records(self) -> tuple[dict[RRefId, Owned], list[Fork]]:
        """Return the references that this worker owns, and the forks that it holds, as they are now."""
        with self._lock:
            return self.ownership.owned.by_id(), list(self.ownership.forks.values())

    def _known(self) -> set[RRefId]:
        owned, forks = self.records()
        return {*owned, *(fork.rref_id for fork in forks)}

    def _counts(self) -> dict[str, int]:
        self.agent.timers.run_waiting()
        with self._lock:
            return self.ownership.counts()

    def _pytorch_counts(self) -> dict[str, int]:
        records, forks = self.records()
        owned = list(records.values())
        # As in PyTorch: a value counts from the moment when another worker may know of it, or waits for it to be made.
        shared = [record for record in owned if _forks_elsewhere(record, self.me) or not record.made]
        pending = [fork for fork in forks if fork.owner != self.me and not fork.settled.done()]
        return {
            "num_owner_rrefs": len(shared),
            "num_forks": sum(_forks_elsewhere(record, self.me) for record in owned),
            "num_pending_users": len(pending),
            "num_pending_futures": sum(record.value is not None and not record.value.done() for record in owned),
        }

    def is_gone(self, key: WorkerKey) -> bool:
        """Return whether it is known that a worker is lost or has left."""
        peers = self.agent.peers
        return peers.heard_of(key.number) and bool(peers.at(key.number).gone)

    def worker(self, key: WorkerKey) -> str:
        """Return the name of a worker."""
        return name_of(self.agent, key)

    def _name_of(self, key: WorkerKey) -> str:
        return f"worker {self.worker(key)!r}"


def _forks_elsewhere(record: Owned, me: WorkerKey) -> int:
    return sum(holder != me for holder, _ in record.forks.values())


def places_wanted(option: bool | None) -> bool:
    """Return whether places are to be recorded: as the option says, or if it is None, the environment."""
    return os.environ.get(PLACES_VARIABLE) == "1" if option is None else option


def name_of(agent: Agent, key: WorkerKey) -> str:
    """Return the name of a worker; its number if it joins, and this one has not heard of it."""
    return agent.peers.at(key.number).info.name if agent.peers.heard_of(key.number) else f"number {key.number}"


def key_of(peer: Peer) -> WorkerKey:
    """Return the key of a worker."""
    return WorkerKey(peer.number, peer.record.incarnation)
