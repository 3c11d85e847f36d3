"""The ownership protocol: who holds forks of what, and when a value may be freed (``PROTOCOL.md``).

A state machine of one worker, without sockets, threads and clocks: ``handle(event)`` returns instructions, which the driver
carries out in any order. It has no lock: the driver serialises the events. Control messages arrive exactly once, in any
order; transfers may be lost, late and repeated, and their sender may not know which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import AgentClosedError, IllegalEventError
from ..core.futures import Future
from . import protocol as p
from .forks import Action, Fork, ForkEvent, State
from .ids import ForkId, IdSource, RRefId, WorkerKey
from .owner_table import Answer, Owned, OwnerTable
from .transfers import Entry, Kind, Transfer, Transfers


class Ownership:
    """The machine of one worker.

    Args:
        me: the worker.
        name_of: returns the name of a worker for messages to people.
    """

    def __init__(self, me: WorkerKey, name_of: Callable[[WorkerKey], str] = "worker {}".format) -> None:
        self.me = me
        self.closed = False
        self.forks: dict[ForkId, Fork] = {}  # those that this worker holds
        self.transfers = Transfers()
        self._children: dict[
            ForkId, tuple[Fork, Transfer]
        ] = {}  # pending: the parent here, and what took the child away
        self.lost: set[WorkerKey] = set()
        self._instructions: list[p.Instruction] = []
        self.owned = OwnerTable(me, self.lost, self._instructions.append)
        self._ids = IdSource(me)
        self._name_of = name_of

    def handle(self, event: p.Event) -> list[p.Instruction]:
        """Take an event, and return what the driver has to do. After ``close`` events have no effect.

        Raises:
            AgentClosedError: references are sent after ``close``.
            IllegalEventError: a message came that the state of its fork does not allow.
            ValueError: a reference is sent that was released.
        """
        if self.closed and not isinstance(event, p.Sending):
            return []
        _HANDLERS[type(event)](self, event)
        instructions = self._instructions[:]
        self._instructions.clear()
        return instructions

    # -- references that start or leave here

    def own(self, value: Future[Any]) -> Fork:
        """Return the first fork of a new reference to ``value``, whose owner is this worker."""
        self._check_open()
        fork = self._own(self._ids.rref(self.me))
        self.owned.awaited(fork.rref_id).value = value
        return fork

    def _own(self, rref_id: RRefId) -> Fork:
        fork = self._add(Fork(rref_id, self._ids.fork(), self.me, State.CONFIRMED))
        self.owned.create(rref_id, fork.fork_id, self.me)
        return fork

    def _add(self, fork: Fork) -> Fork:
        self.forks[fork.fork_id] = fork
        return fork

    def _sending(self, event: p.Sending) -> None:
        transfer = event.transfer
        self._check_open()
        for fork in transfer.forks:  # before anything is changed: a message that fails here has no effect
            if fork.dropped:
                raise ValueError(
                    f"you sent RRef {fork.rref_id} after it was released: send it before, or keep the handle"
                )
        self.transfers.open(transfer, transfer.peer in self.lost)
        if transfer.creates:
            self._create(transfer)
        transfer.entries += [self._give(transfer, fork) for fork in transfer.forks]

    def _create(self, transfer: Transfer) -> None:
        # On this worker itself the reference exists at once: if the call cannot be made, that is an error of the value.
        owner = transfer.peer
        rref_id = self._ids.rref(owner)
        if owner == self.me:
            fork = self._own(rref_id)
        else:
            fork = self._add(Fork(rref_id, self._ids.fork(), owner))
            fork.created_here = True
        transfer.created = fork
        transfer.entries.append(Entry(rref_id, fork.fork_id, owner, Kind.CREATED))
        if owner in self.lost:
            self._lose_owner(fork)

    def _give(self, transfer: Transfer, parent: Fork) -> Entry:
        child_id = self._ids.fork()
        # While the owner itself waits for the creating call it cannot register forks: the child's holder has to ask for it.
        registered = parent.owner == self.me and self.owned.is_created(parent.rref_id)
        if transfer.peer not in self.lost:
            if registered:
                self.owned.register(parent.rref_id, child_id, transfer)
            else:
                parent.children += 1
                self._children[child_id] = (parent, transfer)
        kind = Kind.REGISTERED if registered else Kind.UNREGISTERED
        return Entry(parent.rref_id, child_id, parent.owner, kind)

    # -- references that arrive

    def _arrived(self, event: p.Arrived) -> None:
        transfer = event.transfer
        sender = transfer.peer
        if sender in self.lost or not self.transfers.see(sender, transfer.number):
            return
        transfer.adopted = True
        if sender == self.me:
            self._was_delivered(self.transfers.close(sender, transfer.number))
        for entry in transfer.entries:
            if entry.kind is Kind.CREATED:
                self._was_created(sender, entry)
            else:
                transfer.forks.append(self._adopt(sender, entry))

    def _was_created(self, creator: WorkerKey, entry: Entry) -> None:
        if creator == self.me:
            return  # it exists since it was sent, and may be freed already
        for holder, fork_id in self.owned.create(entry.rref_id, entry.fork_id, creator):
            self._send(holder, p.Accept(fork_id))

    def _adopt(self, sender: WorkerKey, entry: Entry) -> Fork:
        fork = self._add(Fork(entry.rref_id, entry.fork_id, entry.owner))
        if entry.kind is Kind.UNREGISTERED:
            fork.parent_holder = sender
        if entry.owner in self.lost:
            self._lose_owner(fork)
        elif entry.kind is Kind.REGISTERED:
            self._change(fork, ForkEvent.ACCEPT)
        else:
            self._send(entry.owner, p.Register(entry.rref_id, entry.fork_id))
        return fork

    # -- transfers that arrived or did not

    def _delivered(self, event: p.Delivered) -> None:
        self._was_delivered(self.transfers.close(event.transfer.peer, event.transfer.number))

    def _was_delivered(self, transfer: Transfer | None) -> None:
        # None: that was known before.
        if transfer is not None and transfer.created is not None and transfer.peer != self.me:
            self._change(transfer.created, ForkEvent.ACCEPT)

    def _connection_broke(self, event: p.ConnectionBroke) -> None:
        for transfer in self.transfers.open_to(event.peer):
            self._not_delivered(p.NotDelivered(transfer))

    def _not_delivered(self, event: p.NotDelivered) -> None:
        transfer = self.transfers.find(event.transfer.peer, event.transfer.number)
        if transfer is not None and not transfer.cancelling:
            transfer.cancelling = True
            creates = None if transfer.created is None else transfer.created.rref_id
            self._send(transfer.peer, p.Cancel(transfer.number, creates))

    def _take_back(self, entry: Entry) -> None:
        if entry.kind is Kind.REGISTERED:
            self._unregister(entry.rref_id, entry.fork_id)
        elif entry.kind is Kind.UNREGISTERED:
            self._child_answered(entry.fork_id)
        elif entry.owner != self.me:
            reason = f"RRef {entry.rref_id} was not created: the call never reached {self._name_of(entry.owner)}"
            self._change(self.forks[entry.fork_id], ForkEvent.REJECT, reason)

    # -- states of forks

    def _change(self, fork: Fork, event: ForkEvent, reason: str = "", lost: WorkerKey | None = None) -> None:
        actions = fork.handle(event)
        if fork.state is State.DELETED:
            del self.forks[fork.fork_id]
        for action in actions:
            self._act(action, fork, reason, lost)

    def _act(self, action: Action, fork: Fork, reason: str, lost: WorkerKey | None) -> None:
        if action is Action.DELETE:
            self._send(fork.owner, p.Delete(fork.rref_id, fork.fork_id))
        elif action is Action.ACKNOWLEDGE:
            if fork.parent_holder is not None:
                self._send(fork.parent_holder, p.Acknowledge(fork.fork_id))
        elif not fork.dropped:
            confirm = action is Action.CONFIRM
            self._instructions.append(p.Confirmed(fork) if confirm else p.Failed(fork, reason, lost))

    def _lose_owner(self, fork: Fork) -> None:
        name = self._name_of(fork.owner)
        reason = f"the owner of this RRef, {name}, was lost, and its value with it: create it elsewhere"
        self._change(fork, ForkEvent.OWNER_LOST, reason, fork.owner)

    def _dropped(self, event: p.Dropped) -> None:
        if not event.fork.dropped:
            event.fork.dropped = True
            self._release_if_unused(event.fork)

    def _release_if_unused(self, fork: Fork) -> None:
        if fork.dropped and not fork.children:
            self._change(fork, ForkEvent.RELEASE)

    def _child_answered(self, child_id: ForkId) -> Transfer | None:
        # None: that was known before.
        if child_id not in self._children:
            return None
        parent, transfer = self._children.pop(child_id)
        parent.children -= 1
        self._release_if_unused(parent)
        return transfer

    def _unregister(self, rref_id: RRefId, fork_id: ForkId) -> None:
        # Who deletes a fork has received it, and the whole transfer with it.
        self._close(self.owned.unregister(rref_id, fork_id))

    def _close(self, transfer: Transfer | None) -> None:
        if transfer is not None:
            self._was_delivered(self.transfers.close(transfer.peer, transfer.number))

    # -- control messages

    def _received(self, event: p.Received) -> None:
        if event.sender not in self.lost:
            _RECEIVERS[type(event.message)](self, event.sender, event.message)

    def _on_register(self, holder: WorkerKey, message: p.Register) -> None:
        answer = self.owned.request(message.rref_id, message.fork_id, holder)
        if answer is Answer.ACCEPTED:
            self._send(holder, p.Accept(message.fork_id))
        elif answer is Answer.REJECTED:
            self._send(holder, p.Reject(message.fork_id, self._why_gone(message)))

    def _on_accept(self, _owner: WorkerKey, message: p.Accept) -> None:
        self._change(self._fork(message), ForkEvent.ACCEPT)

    def _on_reject(self, _owner: WorkerKey, message: p.Reject) -> None:
        self._change(self._fork(message), ForkEvent.REJECT, message.reason)

    def _fork(self, message: p.Accept | p.Reject) -> Fork:
        fork = self.forks.get(message.fork_id)
        if fork is None:
            raise IllegalEventError(f"worker {self.me} holds no fork that this message can be about: {message}")
        return fork

    def _on_acknowledge(self, _holder: WorkerKey, message: p.Acknowledge) -> None:
        self._close(self._child_answered(message.fork_id))

    def _on_delete(self, _holder: WorkerKey, message: p.Delete) -> None:
        self._unregister(message.rref_id, message.fork_id)

    def _on_cancel(self, sender: WorkerKey, message: p.Cancel) -> None:
        refused = self.transfers.see(sender, message.transfer)
        if refused and message.rref_id is not None and sender != self.me:
            self._reject_early(message.rref_id, f"its creating call from {self._name_of(sender)} did not arrive")
        self._send(sender, p.CancelResult(message.transfer, not refused))

    def _on_cancel_result(self, receiver: WorkerKey, message: p.CancelResult) -> None:
        transfer = self.transfers.close(receiver, message.transfer)
        if message.received:
            self._was_delivered(transfer)
        elif transfer is not None:
            for entry in transfer.entries:
                self._take_back(entry)

    def _reject_early(self, rref_id: RRefId, reason: str) -> None:
        for holder, fork_id in self.owned.never_created(rref_id):
            self._send(holder, p.Reject(fork_id, f"RRef {rref_id} was never created: {reason}"))

    def _send(self, to: WorkerKey, message: p.Message) -> None:
        if to == self.me:
            self._received(p.Received(to, message))
        elif to not in self.lost:
            self._instructions.append(p.Send(to, message))

    def _why_gone(self, request: p.Register) -> str:
        parent_holder = request.fork_id.created_on
        start = f"RRef {request.rref_id} is gone from its owner, {self._name_of(self.me)}: "
        if parent_holder in self.lost:
            return (
                start
                + f"{self._name_of(parent_holder)}, which passed it to you, was lost before the owner heard of you"
            )
        return start + "a worker that passed it on was lost too early, or its creating call never arrived"

    # -- losses and the end

    def _worker_lost(self, event: p.WorkerLost) -> None:
        key = event.worker
        if key in self.lost or key == self.me:
            return
        self.lost.add(key)
        self.transfers.worker_lost(key)
        for child_id in [child_id for child_id, (_, transfer) in self._children.items() if transfer.peer == key]:
            self._child_answered(child_id)
        for rref_id in self.owned.worker_lost(key):
            self._reject_early(rref_id, f"{self._name_of(key)} was lost before its creating call arrived")
        for fork in list(self.forks.values()):
            # A fork of the list may be deleted by now, as the parent of one before it.
            if fork.owner == key and fork.fork_id in self.forks:
                self._lose_owner(fork)
        self._ids.owner_lost(key)

    def close(self) -> tuple[list[Fork], list[Owned]]:
        """Forget everything, and return it: the agent shuts down."""
        self.closed = True
        forks = list(self.forks.values())
        self.forks.clear()
        self._children.clear()
        self._instructions.clear()
        self.transfers.clear()
        return forks, self.owned.clear()

    def _check_open(self) -> None:
        if self.closed:
            raise AgentClosedError("you used an RRef after shutdown: the agent it belongs to is closed")

    # -- looking

    def find(self, rref_id: RRefId, asker: WorkerKey) -> Owned | None:
        """Return the record of a value that ``asker`` may wait for; ``None``: there is none, and there will be none.

        A creator's own fetch may overtake its creating call, and waits for it. All others fetch after ``Confirmed``.
        """
        if self.may_fetch(rref_id, asker):
            return self.owned.awaited(rref_id)
        return self.owned.get(rref_id)

    def may_fetch(self, rref_id: RRefId, asker: WorkerKey) -> bool:
        """Return whether the value is here, or may still come for ``asker``."""
        created = self.owned.is_created(rref_id)
        return created or (rref_id.created_on == asker and self.owned.may_come(rref_id))

    def forks_of(self, rref_id: RRefId) -> dict[ForkId, WorkerKey]:
        """Return the registered forks of a reference owned here, and who holds each."""
        owned = self.owned.get(rref_id)
        return {} if owned is None else {fork_id: holder for fork_id, (holder, _) in owned.forks.items()}

    def counts(self) -> dict[str, int]:
        """Return the sizes of the tables: all are zero when every fork is deleted and every question answered."""
        return {
            "owned_rrefs": len(self.owned),
            "owner_handles": sum(fork.owner == self.me for fork in self.forks.values()),
            "user_forks": sum(fork.owner != self.me for fork in self.forks.values()),
            "pending_children": len(self._children),
            **self.transfers.counts(),
        }


_HANDLERS: dict[type[Any], Callable[[Ownership, Any], None]] = {
    p.Sending: Ownership._sending,
    p.Arrived: Ownership._arrived,
    p.Delivered: Ownership._delivered,
    p.NotDelivered: Ownership._not_delivered,
    p.ConnectionBroke: Ownership._connection_broke,
    p.Received: Ownership._received,
    p.Dropped: Ownership._dropped,
    p.WorkerLost: Ownership._worker_lost,
}

_RECEIVERS: dict[type[Any], Callable[[Ownership, WorkerKey, Any], None]] = {
    p.Register: Ownership._on_register,
    p.Accept: Ownership._on_accept,
    p.Reject: Ownership._on_reject,
    p.Acknowledge: Ownership._on_acknowledge,
    p.Delete: Ownership._on_delete,
    p.Cancel: Ownership._on_cancel,
    p.CancelResult: Ownership._on_cancel_result,
}
