"""The ownership protocol: who holds a reference to what, and when a value may be freed (``PROTOCOL.md``).

A pure state machine, one per agent. Events are method calls; instructions are appended to ``outbox``, which the
driver takes with ``take`` and carries out in any order. It has no lock: the driver serialises the calls. Control
messages must arrive exactly once but may do so in any order; carriers (messages that bring references) may be
lost, late and repeated, and their sender may be unsure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.errors import AgentClosedError
from ..rpc.extend import IntervalSet
from . import protocol as p
from .forks import Child, Fork, State
from .ids import ForkId, IdSource, RRefId, WorkerKey
from .owner_table import Claimed, Owned, OwnerTable
from .protocol import Carrier, Entry, How, Instruction, Message

NO_CARRIER = -1  # the number of a message without references


class Ownership:
    """The machine of one worker. ``name_of`` says how a worker is called in messages to people."""

    def __init__(self, me: WorkerKey, name_of: Callable[[WorkerKey], str] = "worker {}".format) -> None:
        self.me = me
        self.outbox: list[Instruction] = []
        self.closed = False
        self._name_of = name_of
        self._lost: set[WorkerKey] = set()
        self._owned = OwnerTable(me, self._lost, self.outbox)
        self._forks: dict[ForkId, Fork] = {}  # every handle at this worker
        self._pending: dict[ForkId, Child] = {}
        self._carriers: dict[tuple[WorkerKey, int], Carrier] = {}  # sent, and not known to have arrived
        self._seen: dict[WorkerKey, IntervalSet] = {}  # numbers of carriers that arrived or are refused
        self._next_carrier: dict[WorkerKey, int] = {}
        self._ids = IdSource(me)

    def take(self) -> list[Instruction]:
        """The instructions since the last call."""
        instructions = self.outbox[:]
        self.outbox.clear()
        return instructions

    # -- references that start or leave here

    def own(self) -> tuple[RRefId, ForkId]:
        """A new reference whose owner is this worker, and the first handle to it."""
        self._check_open()
        rref_id = self._ids.rref(self.me)
        return rref_id, self._own(rref_id)

    def create(
        self, owner: WorkerKey, references: Iterable[tuple[RRefId, ForkId]] = ()
    ) -> tuple[RRefId, ForkId, Carrier]:
        """A new reference whose owner is ``owner``, our handle to it, and the carrier of the creating call.

        ``references`` are those among the call's arguments. With this worker as ``owner`` it exists at once; if the
        call then cannot be made, that is the value's error and none of the reference.
        """
        references = self._checked(references)
        rref_id = self._ids.rref(owner)
        if owner == self.me:
            fork_id = self._own(rref_id)
        else:
            fork_id = self._ids.fork()
            fork = self._forks[fork_id] = Fork(rref_id, fork_id, owner)
            fork.carrier = self._next_carrier.get(owner, 0)
        carrier = self._carrier(owner, [Entry(rref_id, fork_id, owner, How.CREATED)], references)
        if owner in self._lost:
            self._fail(fork_id, self._owner_lost(owner), owner)
        return rref_id, fork_id, carrier

    def outgoing(self, to: WorkerKey, references: Iterable[tuple[RRefId, ForkId]]) -> Carrier:
        """The carrier of one message to ``to`` with these handles of ours; each gets a child fork.

        Its number is -1 if there are none: such a message needs no carrier, but may be treated like the others.
        Raises ``ValueError`` if one of them was released.
        """
        return self._carrier(to, [], self._checked(references))

    def _checked(self, references: Iterable[tuple[RRefId, ForkId]]) -> list[tuple[RRefId, ForkId]]:
        # Before anything is changed: a call that fails here has no effect.
        self._check_open()
        references = list(references)
        for rref_id, fork_id in references:
            fork = self._forks.get(fork_id)
            if fork is None or fork.dropped:
                raise ValueError(f"you sent RRef {rref_id} after it was released: send it before, or keep the handle")
        return references

    def _carrier(self, to: WorkerKey, creation: list[Entry], references: list[tuple[RRefId, ForkId]]) -> Carrier:
        if not creation and not references:
            return Carrier(to, NO_CARRIER, [])
        number = self._next_carrier.get(to, 0)
        entries = creation + [self._child(to, number, rref_id, fork_id) for rref_id, fork_id in references]
        carrier = Carrier(to, number, entries)
        if to not in self._lost:  # to a lost worker it will not arrive: there is nothing to wait for
            self._next_carrier[to] = number + 1
            self._carriers[to, number] = carrier
        return carrier

    def _child(self, to: WorkerKey, number: int, rref_id: RRefId, parent_id: ForkId) -> Entry:
        child_id = self._ids.fork()
        parent = self._forks[parent_id]
        # An owner that awaits the creating call itself cannot vouch for the reference: the child claims like any other.
        registered = parent.owner == self.me and self._owned.is_created(rref_id)
        if to not in self._lost:
            if registered:
                self._owned.register(rref_id, child_id, to, number)
            else:
                parent.children += 1
                self._pending[child_id] = Child(parent_id, to, number)
        return Entry(rref_id, child_id, parent.owner, How.REGISTERED if registered else How.CLAIMED)

    # -- what becomes of carriers

    def incoming(self, sender: WorkerKey, number: int, entries: Iterable[Entry]) -> list[Fork] | None:
        """A carrier arrived: adopt its references, before anything in the message is unpickled.

        Returns the handles that this worker has from now on, one for each entry that is no creation; drop those that
        nobody takes. ``None``: a repetition, refused, or from a lost worker: ignore the whole message.
        """
        if self.closed or sender in self._lost:
            return None
        if number != NO_CARRIER and not self._seen_from(sender).add(number):
            return None
        if sender == self.me:
            self.delivered(sender, number)
        adopted = []
        for entry in entries:
            if entry.how is How.CREATED:
                self._created(sender, entry)
            else:
                adopted.append(self._adopt(sender, entry))
        return adopted

    def _adopt(self, sender: WorkerKey, entry: Entry) -> Fork:
        fork = self._forks[entry.fork_id] = Fork(entry.rref_id, entry.fork_id, entry.owner)
        if entry.how is How.CLAIMED:
            fork.forker = sender
        if entry.owner in self._lost:
            self._fail(entry.fork_id, self._owner_lost(entry.owner), entry.owner)
        elif entry.how is How.REGISTERED:
            self._confirm(entry.fork_id)
        else:
            self._post(entry.owner, p.Claim(entry.rref_id, entry.fork_id))
        return fork

    def _created(self, creator: WorkerKey, entry: Entry) -> None:
        if creator == self.me:
            return  # it exists since `create`, and may be freed already
        for holder, fork_id in self._owned.create(entry.rref_id, entry.fork_id, creator):
            self._post(holder, p.Accept(fork_id))

    def delivered(self, to: WorkerKey, number: int) -> None:
        """It is known that the carrier arrived, for example by the reply to it. (It need not be said: see PROTOCOL.)"""
        carrier = self._carriers.pop((to, number), None)
        if carrier is not None and carrier.entries[0].how is How.CREATED and to != self.me:
            # Its arrival may be known by another reference in it, while the reply is lost.
            self._confirm(carrier.entries[0].fork_id)

    def not_delivered(self, to: WorkerKey, number: int) -> None:
        """The carrier was not sent, or nobody knows whether it arrived: have it refused, or learn that it came."""
        carrier = self._carriers.get((to, number))
        if carrier is None or carrier.voiding:
            return
        carrier.voiding = True
        creates = next((entry.rref_id for entry in carrier.entries if entry.how is How.CREATED), None)
        self._post(to, p.Void(number, creates))

    def connection_broke(self, to: WorkerKey) -> None:
        """``not_delivered`` for every carrier to ``to`` whose arrival is not known."""
        for number in [number for receiver, number in self._carriers if receiver == to]:
            self.not_delivered(to, number)

    # -- handles and values

    def fork(self, fork_id: ForkId) -> Fork | None:
        """A handle at this worker; ``None`` if it is gone."""
        return self._forks.get(fork_id)

    def owned(self, rref_id: RRefId) -> Owned | None:
        """A reference that was created here, and is not freed."""
        return self._owned.get(rref_id) if self._owned.is_created(rref_id) else None

    def awaited(self, rref_id: RRefId, asker: WorkerKey) -> Owned | None:
        """The reference whose value ``asker`` may wait for: it exists, or its creating call may still come."""
        owned = self._owned.get(rref_id)
        return self._owned.awaited(rref_id) if owned is None and self.may_park(rref_id, asker) else owned

    def confirmed(self, fork_id: ForkId) -> None:
        """The owner replied to the creating call of this handle."""
        fork = self._forks.get(fork_id)
        if fork is not None:
            self.delivered(fork.owner, fork.carrier)

    def dropped(self, fork_id: ForkId) -> None:
        """The handle is gone (finalizer or explicit release); saying so again is harmless."""
        fork = self._forks.get(fork_id)
        if fork is not None and not fork.dropped:
            fork.dropped = True
            self._maybe_release(fork_id, fork)

    def may_park(self, rref_id: RRefId, asker: WorkerKey) -> bool:
        """Whether a fetch by ``asker`` may wait for the value of ``rref_id``: False means that it must fail.

        A fetch for an id that is not known here (yet) may wait only if it is the creator's own: that may overtake the
        creating call. Everyone else waits for `Confirmed` before asking.
        """
        return self._owned.is_created(rref_id) or (rref_id.maker == asker and self._owned.may_come(rref_id))

    def _maybe_release(self, fork_id: ForkId, fork: Fork) -> None:
        if not fork.dropped or fork.children or fork.state is State.PENDING:
            return
        del self._forks[fork_id]
        if fork.owner == self.me:
            self._unregister(fork.rref_id, fork_id)
        elif fork.state is State.CONFIRMED:
            self._post(fork.owner, p.Delete(fork.rref_id, fork_id))

    def _confirm(self, fork_id: ForkId) -> None:
        self._settle(fork_id, State.CONFIRMED, p.Confirmed(fork_id))

    def _fail(self, fork_id: ForkId, message: str, lost: WorkerKey | None = None) -> None:
        self._settle(fork_id, State.FAILED, p.Fail(fork_id, message, lost))

    def _settle(self, fork_id: ForkId, state: State, instruction: p.Confirmed | p.Fail) -> None:
        fork = self._forks.get(fork_id)
        if fork is None or fork.state is state or fork.state is State.FAILED:
            return
        fork.state = state
        if not fork.dropped:
            self.outbox.append(instruction)
        self._tell_forker(fork_id, fork)
        self._maybe_release(fork_id, fork)

    def _tell_forker(self, fork_id: ForkId, fork: Fork) -> None:
        forker, fork.forker = fork.forker, None
        if forker is not None:
            self._post(forker, p.ChildAccepted(fork_id))

    def _let_go_of(self, child: Child) -> None:
        parent = self._forks[child.parent]  # there: its pending child kept it
        parent.children -= 1
        self._maybe_release(child.parent, parent)

    def _unregister(self, rref_id: RRefId, fork_id: ForkId) -> None:
        registration = self._owned.unregister(rref_id, fork_id)
        if registration is not None:
            self.delivered(*registration)  # whoever deletes a fork has received it

    # -- control messages

    def receive(self, sender: WorkerKey, message: Message) -> None:
        """A control message arrived, for the first and only time; those of a lost worker are ignored."""
        if not self.closed and sender not in self._lost:
            _HANDLERS[type(message)](self, sender, message)

    def _on_claim(self, holder: WorkerKey, message: p.Claim) -> None:
        answer = self._owned.claim(message.rref_id, message.fork_id, holder)
        if answer is Claimed.ACCEPTED:
            self._post(holder, p.Accept(message.fork_id))
        elif answer is Claimed.GONE:
            self._post(holder, p.Reject(message.fork_id, self._why_gone(message)))

    def _on_accept(self, _owner: WorkerKey, message: p.Accept) -> None:
        self._confirm(message.fork_id)

    def _on_reject(self, _owner: WorkerKey, message: p.Reject) -> None:
        self._fail(message.fork_id, message.reason)

    def _on_child_accepted(self, _holder: WorkerKey, message: p.ChildAccepted) -> None:
        child = self._pending.pop(message.fork_id, None)
        if child is not None:
            self.delivered(child.to, child.carrier)
            self._let_go_of(child)

    def _on_delete(self, _holder: WorkerKey, message: p.Delete) -> None:
        self._unregister(message.rref_id, message.fork_id)

    def _on_void(self, sender: WorkerKey, message: p.Void) -> None:
        refused = self._seen_from(sender).add(message.carrier)
        if refused and message.creates is not None and sender != self.me:
            self._reject_early(message.creates, f"its creating call from {self._name_of(sender)} did not arrive")
        self._post(sender, p.Voided(message.carrier, not refused))

    def _on_voided(self, receiver: WorkerKey, message: p.Voided) -> None:
        if message.received:
            self.delivered(receiver, message.carrier)
            return
        carrier = self._carriers.pop((receiver, message.carrier), None)
        for entry in carrier.entries if carrier is not None else ():
            self._roll_back(entry)

    def _roll_back(self, entry: Entry) -> None:
        if entry.how is How.REGISTERED:
            self._unregister(entry.rref_id, entry.fork_id)
        elif entry.how is How.CREATED:
            if entry.owner != self.me:
                said = f"RRef {entry.rref_id} was not created: the call never reached {self._name_of(entry.owner)}"
                self._fail(entry.fork_id, said)
        elif entry.fork_id in self._pending:
            self._let_go_of(self._pending.pop(entry.fork_id))

    def _reject_early(self, rref_id: RRefId, reason: str) -> None:
        for holder, fork_id in self._owned.never_created(rref_id):
            self._post(holder, p.Reject(fork_id, f"RRef {rref_id} was never created: {reason}"))

    # -- losses and the end

    def worker_lost(self, key: WorkerKey) -> None:
        """``key`` is gone for good, by death or by leaving: its forks and its messages are void."""
        if self.closed or key in self._lost or key == self.me:
            return
        self._lost.add(key)
        for number in [number for receiver, number in self._carriers if receiver == key]:
            del self._carriers[key, number]
        for child_id in [child_id for child_id, child in self._pending.items() if child.to == key]:
            self._let_go_of(self._pending.pop(child_id))
        for rref_id in self._owned.worker_lost(key):
            self._reject_early(rref_id, f"{self._name_of(key)} was lost before its creating call arrived")
        for fork_id in [fork_id for fork_id, fork in self._forks.items() if fork.owner == key]:
            self._fail(fork_id, self._owner_lost(key), key)
        self._seen.pop(key, None)
        self._next_carrier.pop(key, None)
        self._ids.owner_lost(key)

    def close(self) -> tuple[list[Fork], list[Owned]]:
        """The agent shuts down: forget everything, and return it; events that still come are ignored."""
        self.closed = True
        held = list(self._forks.values()), list(self._owned)
        self._owned.clear()
        for table in (self._forks, self._pending, self._carriers, self._seen, self.outbox):
            table.clear()
        return held

    def counts(self) -> dict[str, int]:
        """For ``debug_info``: all are zero when every handle is gone and every question answered."""
        return {
            "owned_rrefs": len(self._owned),
            "owner_handles": sum(fork.owner == self.me for fork in self._forks.values()),
            "user_forks": sum(fork.owner != self.me for fork in self._forks.values()),
            "pending_children": len(self._pending),
            "voiding_carriers": sum(carrier.voiding for carrier in self._carriers.values()),
            "open_carriers": len(self._carriers),
        }

    def forks_of(self, rref_id: RRefId) -> dict[ForkId, WorkerKey]:
        """The registered forks of a reference owned here, and who holds each."""
        return self._owned.forks(rref_id)

    # -- small parts

    def _check_open(self) -> None:
        if self.closed:
            raise AgentClosedError("you used an RRef after shutdown: the agent it belongs to is closed")

    def _owner_lost(self, owner: WorkerKey) -> str:
        return f"the owner of this RRef, {self._name_of(owner)}, was lost, and its value with it: create it elsewhere"

    def _why_gone(self, claim: p.Claim) -> str:
        forker = claim.fork_id.maker
        said = f"RRef {claim.rref_id} is gone from its owner, {self._name_of(self.me)}: "
        if forker in self._lost:
            return said + f"{self._name_of(forker)}, which passed it to you, was lost before the owner heard of you"
        return said + "a worker that passed it on was lost too early, or its creating call never arrived"

    def _own(self, rref_id: RRefId) -> ForkId:
        fork_id = self._ids.fork()
        self._forks[fork_id] = Fork(rref_id, fork_id, self.me, State.CONFIRMED)
        self._owned.create(rref_id, fork_id, self.me)
        return fork_id

    def _post(self, to: WorkerKey, message: Message) -> None:
        if to == self.me:
            self.receive(to, message)
        elif to not in self._lost:
            self.outbox.append(p.Send(to, message))

    def _seen_from(self, sender: WorkerKey) -> IntervalSet:
        return self._seen.setdefault(sender, IntervalSet())


_HANDLERS: dict[type[Message], Callable[[Ownership, WorkerKey, Any], None]] = {
    p.Claim: Ownership._on_claim,
    p.Accept: Ownership._on_accept,
    p.Reject: Ownership._on_reject,
    p.ChildAccepted: Ownership._on_child_accepted,
    p.Delete: Ownership._on_delete,
    p.Void: Ownership._on_void,
    p.Voided: Ownership._on_voided,
}
