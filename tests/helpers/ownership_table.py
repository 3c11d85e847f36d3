"""Table of ownership machines whose messages a test delivers one by one, in any order that it wants."""

from typing import Any

from telegrad.core.futures import Future
from telegrad.rref import protocol as p
from telegrad.rref.forks import Fork
from telegrad.rref.ids import ForkId, RRefId, WorkerKey
from telegrad.rref.ownership import Ownership
from telegrad.rref.transfers import ReferenceTransfer


class Table:
    """One machine for each worker; control messages wait in ``flying`` until a test delivers them."""

    def __init__(self, *keys: WorkerKey) -> None:
        self.machines: dict[WorkerKey, Ownership] = {}
        self.flying: list[tuple[WorkerKey, WorkerKey, p.Message]] = []
        self.instructions: dict[WorkerKey, list[Any]] = {}  # but ``Send``
        for key in keys:
            self.join(key)

    def join(self, key: WorkerKey) -> None:
        """Add a worker."""
        self.machines[key] = Ownership(key)
        self.instructions[key] = []

    def handle(self, key: WorkerKey, event: p.Event) -> None:
        """Give a machine an event: its messages fly, its other instructions are noted."""
        for instruction in self.machines[key].handle(event):
            if isinstance(instruction, p.Send):
                self.flying.append((key, instruction.to, instruction.message))
            else:
                self.instructions[key].append(instruction)

    # -- control messages

    def kinds(self) -> list[str]:
        """Return the names of the flying messages."""
        return [type(message).__name__ for _, _, message in self.flying]

    def passes(self, kind: type[Any]) -> Any:
        """Deliver the one flying message of this kind, and return it."""
        (flight,) = [flight for flight in self.flying if isinstance(flight[2], kind)]
        self.flying.remove(flight)
        sender, to, message = flight
        self.handle(to, p.Received(sender, message))
        return message

    def settle(self) -> None:
        """Deliver everything, in the order of sending."""
        while self.flying:
            sender, to, message = self.flying.pop(0)
            if to in self.machines:
                self.handle(to, p.Received(sender, message))

    # -- references

    def own(self, key: WorkerKey) -> Fork:
        """Return the fork of a new reference to a value of ``key``."""
        return self.machines[key].own(Future())

    def calls(self, user: WorkerKey, owner: WorkerKey, *references: Fork) -> tuple[Fork, ReferenceTransfer]:
        """Send a creating call; returns its reference, and its transfer, which has not arrived yet."""
        transfer = ReferenceTransfer(owner, references, creates=True)
        self.handle(user, p.Sending(transfer))
        assert transfer.created is not None
        return transfer.created, transfer

    def creates(self, user: WorkerKey, owner: WorkerKey) -> Fork:
        """Send a creating call that arrives and is answered; returns its reference."""
        fork, transfer = self.calls(user, owner)
        assert self.arrives(user, transfer)
        self.handle(user, p.Delivered(transfer))
        return fork

    def sends(self, sender: WorkerKey, to: WorkerKey, *references: Fork) -> ReferenceTransfer:
        """Send a message with references, which has not arrived yet."""
        transfer = ReferenceTransfer(to, references)
        self.handle(sender, p.Sending(transfer))
        return transfer

    def arrives(self, sender: WorkerKey, transfer: ReferenceTransfer) -> bool:
        """Have a transfer arrive; False if it was refused."""
        arriving = ReferenceTransfer.arriving(sender, transfer.number, transfer.entries)
        self.handle(transfer.peer, p.ReferencesArrived(arriving))
        return arriving.adopted

    def adopted(self, transfer: ReferenceTransfer) -> Fork:
        """Return the fork of a transfer's last entry, at its receiver."""
        return self.machines[transfer.peer].forks[transfer.entries[-1].fork_id]

    def gives(self, sender: WorkerKey, to: WorkerKey, reference: Fork) -> Fork:
        """Send one reference and have it arrive; returns the receiver's fork."""
        transfer = self.sends(sender, to, reference)
        assert self.arrives(sender, transfer)
        return self.adopted(transfer)

    def drop(self, key: WorkerKey, reference: Fork) -> None:
        """Drop a reference of ``key``."""
        self.handle(key, p.Dropped(reference))

    def dies(self, key: WorkerKey) -> None:
        """Lose the worker; everyone hears of it at once."""
        del self.machines[key]
        self.flying = [flight for flight in self.flying if flight[1] != key]
        for other in self.machines:
            self.handle(other, p.WorkerLost(key))

    # -- what came of it

    def freed(self, key: WorkerKey) -> list[RRefId]:
        """Return what ``key`` freed so far."""
        return [each.rref_id for each in self.instructions[key] if isinstance(each, p.Free)]

    def failures(self, key: WorkerKey) -> dict[ForkId, str]:
        """Return the forks that failed at ``key``, and why."""
        return {each.fork.fork_id: each.reason for each in self.instructions[key] if isinstance(each, p.ForkFailed)}

    def confirmed(self, key: WorkerKey) -> list[ForkId]:
        """Return the forks that were confirmed at ``key``."""
        return [each.fork.fork_id for each in self.instructions[key] if isinstance(each, p.Confirmed)]

    def assert_empty(self) -> None:
        """Check that no machine remembers anything after everything was delivered."""
        self.settle()
        for key, machine in self.machines.items():
            assert not any(machine.counts().values()), (key, machine.counts())
