"""Workers that join a dynamic group: a pure state machine of its rank 0.

Each newcomer gets a number, which is never used again. It is admitted when every other member knows it, so that every worker
it calls will answer. A lost member does not have to know it. Two workers may join at the same time: the later one gets the
earlier in its list of members, and the earlier one is told of the later.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ...core.errors import RendezvousError
from ...proto.rpc_pb2 import WorkerRecord

MOST_NUMBERS = 1 << 16  # ids of references, contexts and messages have 16 bits for a worker


class JoinAsked(NamedTuple):
    """A worker asks to join, perhaps again because its connection broke."""

    worker: WorkerRecord


class Known(NamedTuple):
    """A member knows a newcomer."""

    by: int
    number: int


class Gone(NamedTuple):
    """A member is lost, or has left."""

    number: int


Event: TypeAlias = JoinAsked | Known | Gone


class Tell(NamedTuple):
    """Tell the member of number ``to`` of a newcomer."""

    to: int
    worker: WorkerRecord


class Admit(NamedTuple):
    """Let a newcomer begin: every member knows it."""

    number: int


Instruction: TypeAlias = Tell | Admit


class Admissions:
    """Machine of the worker ``host``, the first member."""

    def __init__(self, host: WorkerRecord) -> None:
        self._host = host.number
        self._members = {host.number: host}
        self._next = host.number + 1
        self._unaware: dict[int, set[int]] = {}  # by newcomer: the members that do not know it yet

    def holder(self, worker: WorkerRecord) -> WorkerRecord | None:
        """Return the other member that has the worker's name or rank."""
        held = (each for each in self._members.values() if each.name == worker.name or each.rank == worker.rank)
        return next((each for each in held if each.identity != worker.identity), None)

    def number_of(self, worker: WorkerRecord) -> int | None:
        """Return the number of a worker that has one."""
        return next((each.number for each in self._members.values() if each.identity == worker.identity), None)

    def members(self) -> list[WorkerRecord]:
        """Return the records of the members, newcomers included."""
        return list(self._members.values())

    def handle(self, event: Event) -> list[Instruction]:
        """Take an event and return what the driver has to do.

        Raises:
            RendezvousError: no number is left for a newcomer, or another member has its name or rank.
        """
        match event:
            case JoinAsked(worker):
                return self._asked(worker)
            case Known(by, number):
                return self._aware([number], by)
            case Gone(number):
                self._members.pop(number, None)
                self._unaware.pop(number, None)
                return self._aware(list(self._unaware), number)

    def _asked(self, worker: WorkerRecord) -> list[Instruction]:
        number = self.number_of(worker)
        if number is not None:
            return [] if number in self._unaware else [Admit(number)]
        self._check(worker)
        others = [each for each in self._members if each != self._host]
        worker.number, self._next = self._next, self._next + 1
        self._members[worker.number] = worker
        self._unaware[worker.number] = set(others)
        return [*(Tell(to, worker) for to in others), *self._aware([worker.number], self._host)]

    def _check(self, worker: WorkerRecord) -> None:
        if (holder := self.holder(worker)) is not None:
            raise RendezvousError(
                f"worker {worker.name!r} (rank {worker.rank}, process {worker.process_id}) cannot join: worker "
                f"{holder.name!r} (process {holder.process_id}) has that name or rank {holder.rank}, and has not left"
            )
        if self._next >= MOST_NUMBERS:
            raise RendezvousError(
                f"{self._next} workers have joined this group since it began, and no more can join; start a new group"
            )

    def _aware(self, numbers: list[int], by: int) -> list[Instruction]:
        admitted = []
        for number in numbers:
            if (unaware := self._unaware.get(number)) is not None:
                unaware.discard(by)
                if not unaware:
                    del self._unaware[number]
                    admitted.append(Admit(number))
        return list(admitted)
