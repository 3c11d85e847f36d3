"""Ownership protocol: which workers hold forks of a reference, and when its value may be freed (``PROTOCOL.md``).

A state machine of one worker, without sockets, threads and clocks: ``handle(event)`` returns instructions, which the driver
carries out in any order. It has no lock: the driver serialises the events. Control messages arrive exactly once, in any
order. Transfers may be lost, late or repeated, and their sender may not know which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import AgentClosedError, IllegalEventError
from ..core.futures import Future
from . import protocol as p
from .forks import Fork, ForkAction, ForkEvent, State
from .ids import ForkId, IdSource, RRefId, WorkerKey
from .owner_table import Owned, OwnerTable, RegisterAnswer
from .transfers import Entry, EntryKind, ReferenceTransfer, Transfers


class Ownership:
    """Ownership machine of one worker.

    Args:
        me: the worker.
        name_of: returns the name of a worker for error messages.
        is_gone: returns whether a worker is gone of whose loss this machine was not told, because its worker joined later.
    """

    def __init__(
        self,
        me: WorkerKey,
        name_of: Callable[[WorkerKey], str] = "worker {}".format,
        is_gone: Callable[[WorkerKey], bool] = lambda _: False,
    ) -> None:
        self.me = me
        self.closed = False
        self.forks: dict[ForkId, Fork] = {}  # forks that this worker holds
        self.transfers = Transfers()
        # By id of a pending child: its parent, which is held here, and the transfer that carries the child.
        self._children: dict[ForkId, tuple[Fork, ReferenceTransfer]] = {}
        self.lost: set[WorkerKey] = set()
        self._instructions: list[p.Instruction] = []
        self.owned = OwnerTable(me, self.lost, is_gone, self._instructions.append)
        self._ids = IdSource(me)
        self._name_of = name_of

    def handle(self, event: p.Event) -> list[p.Instruction]:
        """Take an event, and return what the driver has to do. After ``close`` events have no effect.

        Raises:
            AgentClosedError: a reference is sent after ``close``.
            IllegalEventError: the state of a fork does not allow a message that arrived.
            ValueError: a reference is sent after it was released.
        """
        match event:
            case p.Sending(transfer):
                self._sending(transfer)
            case _ if self.closed:
                pass
            case p.ReferencesArrived(transfer):
                self._arrived(transfer)
            case p.Delivered(transfer):
                self._delivered(transfer)
            case p.Dropped(fork):
                self._dropped(fork)
            case p.Received(sender, message):
                self._received(sender, message)
            case p.NotDelivered(transfer):
                self._not_delivered(transfer)
            case p.WorkerLost(worker):
                self._worker_lost(worker)
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

    def _sending(self, transfer: ReferenceTransfer) -> None:
        self._check_open()
        borrowed = [] if transfer.borrowed is None else [transfer.borrowed]
        for fork in borrowed + transfer.forks:  # before any change: a message that fails here has no effect
            if fork.dropped:
                fork.check()  # one whose creation has failed is dropped at once
                raise ValueError(
                    f"you sent RRef {fork.rref_id} after it was released: send it before, or release it later"
                )
        self.transfers.add(transfer, transfer.peer in self.lost)
        if transfer.creates:
            self._create(transfer)
        for fork in borrowed:
            transfer.entries.append(self._give(transfer, fork, EntryKind.BORROWED))
        for fork in transfer.forks:
            transfer.entries.append(self._give(transfer, fork))

    def _create(self, transfer: ReferenceTransfer) -> None:
        # A reference that this worker creates on itself exists at once. If the call does not arrive, its value is an error.
        owner = transfer.peer
        rref_id = self._ids.rref(owner)
        if owner == self.me:
            fork = self._own(rref_id)
        else:
            fork = self._add(Fork(rref_id, self._ids.fork(), owner))
            fork.created_here = True
        transfer.created = fork
        transfer.entries.append(Entry(rref_id, fork.fork_id, owner, EntryKind.CREATED))
        if owner in self.lost:
            self._lose_owner(fork)

    def _give(self, transfer: ReferenceTransfer, parent: Fork, kind: EntryKind | None = None) -> Entry:
        child_id = self._ids.fork()
        # While the owner itself waits for the creating call it cannot register forks: the child's holder must ask for it.
        registered = parent.owner == self.me and self.owned.is_created(parent.rref_id)
        if transfer.peer not in self.lost:
            if registered:
                self.owned.register(parent.rref_id, child_id, transfer)
            else:
                parent.children += 1
                self._children[child_id] = (parent, transfer)
        if kind is None:
            returned = transfer.answered and transfer.peer == parent.owner != self.me
            kind = EntryKind.REGISTERED if registered else EntryKind.RETURNED if returned else EntryKind.UNREGISTERED
        return Entry(parent.rref_id, child_id, parent.owner, kind)

    # -- references that arrive

    def _arrived(self, transfer: ReferenceTransfer) -> None:
        sender = transfer.peer
        if sender in self.lost or not self.transfers.see(sender, transfer.number):
            return
        transfer.adopted = True
        if sender == self.me:
            self._delivered(transfer)
        for entry in transfer.entries:
            if entry.kind is EntryKind.CREATED:
                transfer.value = self._was_created(sender, entry)
            elif entry.kind is EntryKind.BORROWED:
                transfer.value = self.owned.value(entry.rref_id)
            else:
                transfer.forks.append(self._adopt(sender, entry))

    def _was_created(self, creator: WorkerKey, entry: Entry) -> Future[Any] | None:
        if creator != self.me:  # else the reference exists since the call was sent, and may be freed already
            for holder, fork_id in self.owned.create(entry.rref_id, entry.fork_id, creator):
                self._send(holder, p.Accept(fork_id))
        owned = self.owned.get(entry.rref_id)
        return None if owned is None else owned.future()

    def _adopt(self, sender: WorkerKey, entry: Entry) -> Fork:
        fork = self._add(Fork(entry.rref_id, entry.fork_id, entry.owner))
        if entry.kind is EntryKind.UNREGISTERED:
            fork.parent_holder = sender
        if entry.owner in self.lost:
            self._lose_owner(fork)
        elif entry.kind is EntryKind.REGISTERED:
            self._change(fork, ForkEvent.ACCEPT)
        else:
            self._send(entry.owner, p.Register(entry.rref_id, entry.fork_id))
        return fork

    # -- transfers that arrived or did not

    def _delivered(self, transfer: ReferenceTransfer | None) -> None:
        # If it is None or not open any more, its arrival was known before.
        sent = transfer and self.transfers.take(transfer.peer, transfer.number)
        if sent is None:
            return
        if sent.created is not None and sent.peer != self.me:
            self._change(sent.created, ForkEvent.ACCEPT)
        for entry in sent.entries:
            if entry.kind in (EntryKind.RETURNED, EntryKind.BORROWED):
                self._child_answered(entry.fork_id)

    def _not_delivered(self, transfer: ReferenceTransfer) -> None:
        sent = self.transfers.find(transfer.peer, transfer.number)
        if sent is not None and not sent.cancelling:
            sent.cancelling = True
            creates = None if sent.created is None else sent.created.rref_id
            self._send(sent.peer, p.Cancel(sent.number, creates))

    def _take_back(self, entry: Entry) -> None:
        if entry.kind is EntryKind.REGISTERED:
            self._unregister(entry.rref_id, entry.fork_id)
        elif entry.kind is not EntryKind.CREATED:
            self._child_answered(entry.fork_id)
        elif entry.owner == self.me:
            self.owned.never_made(entry.rref_id)
        else:
            reason = f"RRef {entry.rref_id} was not created: the call never reached {self._name_of(entry.owner)}"
            self._change(self.forks[entry.fork_id], ForkEvent.REJECT, reason)

    # -- states of forks

    def _change(self, fork: Fork, event: ForkEvent, reason: str = "", lost: WorkerKey | None = None) -> None:
        actions = fork.handle(event)
        if fork.state is State.DELETED:
            del self.forks[fork.fork_id]
        for action in actions:
            self._act(action, fork, reason, lost)

    def _act(self, action: ForkAction, fork: Fork, reason: str, lost: WorkerKey | None) -> None:
        if action is ForkAction.DELETE:
            self._send(fork.owner, p.Delete(fork.rref_id, fork.fork_id))
        elif action is ForkAction.ACKNOWLEDGE:
            if fork.parent_holder is not None:
                self._send(fork.parent_holder, p.Acknowledge(fork.fork_id))
        elif not fork.dropped:
            confirm = action is ForkAction.CONFIRM
            self._instructions.append(p.Confirmed(fork) if confirm else p.ForkFailed(fork, reason, lost))

    def _lose_owner(self, fork: Fork) -> None:
        name = self._name_of(fork.owner)
        reason = f"the owner of this RRef, {name}, was lost, and its value with it: create it elsewhere"
        self._change(fork, ForkEvent.OWNER_LOST, reason, fork.owner)

    def _dropped(self, fork: Fork) -> None:
        if not fork.dropped:
            fork.dropped = True
            self._release_if_unused(fork)

    def _release_if_unused(self, fork: Fork) -> None:
        if fork.dropped and not fork.children:
            self._change(fork, ForkEvent.RELEASE)

    def _child_answered(self, child_id: ForkId) -> ReferenceTransfer | None:
        # None: the answer was known before.
        if child_id not in self._children:
            return None
        parent, transfer = self._children.pop(child_id)
        parent.children -= 1
        self._release_if_unused(parent)
        return transfer

    def _unregister(self, rref_id: RRefId, fork_id: ForkId) -> None:
        # A worker that deletes a fork has received it, and the whole transfer with it.
        self._delivered(self.owned.unregister(rref_id, fork_id))

    # -- control messages

    def _received(self, sender: WorkerKey, message: p.Message) -> None:
        if sender in self.lost:
            return
        match message:
            case p.Register():
                self._register(sender, message)
            case p.Accept(fork_id):
                self._change(self._fork(fork_id, message), ForkEvent.ACCEPT)
            case p.Reject(fork_id, reason):
                self._change(self._fork(fork_id, message), ForkEvent.REJECT, reason)
            case p.Acknowledge(fork_id):
                self._delivered(self._child_answered(fork_id))
            case p.Delete(rref_id, fork_id):
                self._unregister(rref_id, fork_id)
            case p.Cancel(number, creates):
                self._cancel(sender, number, creates)
            case p.CancelResult(number, received):
                self._cancelled(sender, number, received)

    def _register(self, holder: WorkerKey, message: p.Register) -> None:
        answer = self.owned.request(message.rref_id, message.fork_id, holder)
        if answer is RegisterAnswer.ACCEPTED:
            self._send(holder, p.Accept(message.fork_id))
        elif answer is RegisterAnswer.REJECTED:
            self._send(holder, p.Reject(message.fork_id, self.why_gone(message.rref_id, message.fork_id)))

    def _fork(self, fork_id: ForkId, message: p.Message) -> Fork:
        fork = self.forks.get(fork_id)
        if fork is None:
            raise IllegalEventError(f"worker {self.me} holds no fork that this message can be about: {message}")
        return fork

    def _cancel(self, sender: WorkerKey, number: int, creates: RRefId | None) -> None:
        refused = self.transfers.see(sender, number)
        if refused and creates is not None and sender != self.me:
            self._reject_early(creates, f"its creating call from {self._name_of(sender)} did not arrive")
        self._send(sender, p.CancelResult(number, not refused))

    def _cancelled(self, receiver: WorkerKey, number: int, received: bool) -> None:
        transfer = self.transfers.find(receiver, number)
        if received:
            self._delivered(transfer)
        elif transfer is not None:
            self.transfers.take(receiver, number)
            for entry in transfer.entries:
                self._take_back(entry)

    def _reject_early(self, rref_id: RRefId, reason: str) -> None:
        for holder, fork_id in self.owned.never_created(rref_id):
            self._send(holder, p.Reject(fork_id, f"RRef {rref_id} was never created: {reason}"))

    def _send(self, to: WorkerKey, message: p.Message) -> None:
        if to == self.me:
            self._received(to, message)
        elif to not in self.lost:
            self._instructions.append(p.Send(to, message))

    def why_gone(self, rref_id: RRefId, fork_id: ForkId) -> str:
        """Return why there is no value for a fork that another user gave."""
        parent_holder = fork_id.created_on
        start = f"RRef {rref_id} is gone from its owner, {self._name_of(self.me)}: "
        if parent_holder in self.lost:
            name = self._name_of(parent_holder)
            return start + f"{name}, which passed it to you, was lost before the owner heard of you"
        if self.owned.was_not_created(rref_id):
            return start + "its creating call never arrived"
        return start + "a worker that passed it on was lost too early, or its creator before its creating call arrived"

    # -- losses and the end

    def _worker_lost(self, key: WorkerKey) -> None:
        if key in self.lost or key == self.me:
            return
        self.lost.add(key)
        self.transfers.worker_lost(key)
        for child_id in [child_id for child_id, (_, transfer) in self._children.items() if transfer.peer == key]:
            self._child_answered(child_id)
        for rref_id in self.owned.worker_lost(key):
            self._reject_early(rref_id, f"{self._name_of(key)} was lost before its creating call arrived")
        for fork in list(self.forks.values()):
            # A fork of the list may be deleted by now: it was the parent of an earlier one.
            if fork.owner == key and fork.fork_id in self.forks:
                self._lose_owner(fork)
        self._ids.owner_lost(key)

    def clear(self) -> tuple[list[Fork], list[Owned]]:
        """Clear all tables, and return the forks and records that were in them: the agent shuts down."""
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

    def counts(self) -> dict[str, int]:
        """Return the sizes of the tables. All are zero when every fork is deleted and every question is answered."""
        return {
            "owned_rrefs": len(self.owned),
            "owner_forks": sum(fork.owner == self.me for fork in self.forks.values()),
            "user_forks": sum(fork.owner != self.me for fork in self.forks.values()),
            "pending_children": len(self._children),
            **self.transfers.counts(),
        }
