"""Ownership machines round a table: every message is passed on by hand, so that a test can write any order down."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..rref import protocol as p
from ..rref.ids import ForkId, RRefId, WorkerKey
from ..rref.ownership import Ownership

Handle: TypeAlias = tuple[RRefId, ForkId]


class Table:
    """One machine per worker; control messages wait in ``flying`` until a test passes them on."""

    def __init__(self, *keys: WorkerKey) -> None:
        self.machines: dict[WorkerKey, Ownership] = {}
        self.flying: list[tuple[WorkerKey, WorkerKey, p.Message]] = []
        self.said: dict[WorkerKey, list[Any]] = {}
        for key in keys:
            self.join(key)

    def join(self, key: WorkerKey) -> None:
        """A new worker sits down."""
        self.machines[key] = Ownership(key)
        self.said[key] = []

    def collect(self) -> None:
        """Take all instructions: messages fly, the rest is noted in ``said``."""
        for key, machine in self.machines.items():
            for instruction in machine.take():
                if isinstance(instruction, p.Send):
                    self.flying.append((key, instruction.to, instruction.message))
                else:
                    self.said[key].append(instruction)

    def kinds(self) -> list[str]:
        """What flies, by name."""
        self.collect()
        return [type(message).__name__ for _, _, message in self.flying]

    def passes(self, kind: type[Any]) -> Any:
        """Deliver the one flying message of this kind, and return it."""
        self.collect()
        (flight,) = [flight for flight in self.flying if isinstance(flight[2], kind)]
        self.flying.remove(flight)
        sender, to, message = flight
        self.machines[to].receive(sender, message)
        self.collect()
        return message

    def settle(self) -> None:
        """Deliver everything, in the order of sending."""
        self.collect()
        while self.flying:
            sender, to, message = self.flying.pop(0)
            if to in self.machines:
                self.machines[to].receive(sender, message)
            self.collect()

    def sends(self, sender: WorkerKey, to: WorkerKey, reference: Handle) -> p.Carrier:
        """A carrier with one reference, which has not arrived yet."""
        return self.machines[sender].outgoing(to, [reference])

    def arrives(self, sender: WorkerKey, carrier: p.Carrier) -> bool:
        """The carrier arrives; False if it was refused."""
        return self.machines[carrier.to].incoming(sender, carrier.number, carrier.entries) is not None

    def gives(self, sender: WorkerKey, to: WorkerKey, reference: Handle) -> Handle:
        """Send one reference and have it arrive; returns the new handle."""
        carrier = self.sends(sender, to, reference)
        assert self.arrives(sender, carrier)
        return (reference[0], carrier.entries[0].fork_id)

    def creates(self, user: WorkerKey, owner: WorkerKey, confirm: bool = True) -> Handle:
        """A creating call that arrives and, with ``confirm``, is answered."""
        rref_id, fork_id, carrier = self.machines[user].create(owner)
        assert self.arrives(user, carrier)
        if confirm:
            self.machines[user].confirmed(fork_id)
        return rref_id, fork_id

    def drop(self, key: WorkerKey, reference: Handle) -> None:
        """The handle at ``key`` goes away."""
        self.machines[key].dropped(reference[1])
        self.collect()

    def dies(self, key: WorkerKey) -> None:
        """The worker is lost, and everyone hears of it at once."""
        del self.machines[key]
        self.flying = [flight for flight in self.flying if flight[1] != key]
        for machine in self.machines.values():
            machine.worker_lost(key)

    def freed(self, key: WorkerKey) -> list[RRefId]:
        """What ``key`` freed so far."""
        self.collect()
        return [said.rref_id for said in self.said[key] if isinstance(said, p.Free)]

    def failures(self, key: WorkerKey) -> dict[ForkId, str]:
        """The handles that failed at ``key``, and why."""
        self.collect()
        return {said.fork_id: said.message for said in self.said[key] if isinstance(said, p.Fail)}

    def confirmed(self, key: WorkerKey) -> list[ForkId]:
        """The handles that were confirmed at ``key``."""
        self.collect()
        return [said.fork_id for said in self.said[key] if isinstance(said, p.Confirmed)]

    def assert_empty(self) -> None:
        """After everything was delivered, no machine remembers anything."""
        self.settle()
        for key, machine in self.machines.items():
            assert not any(machine.counts().values()), (key, machine.counts())
