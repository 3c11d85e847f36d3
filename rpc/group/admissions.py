"""Workers that join a dynamic group: a pure state machine of its rank 0.

Each newcomer gets a number, which is never used again. It is admitted when every other member knows it, so that every worker
it calls will answer. A lost member does not have to know it. Two workers may join at the same time: the later one gets the
earlier in its list of members, and the earlier one is told of the later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..rendezvous.group_members import GroupMembers

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord


class JoinAsked(NamedTuple):
    """A worker asks to join, perhaps again because its session broke."""

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
    """Machine of the worker ``host``, the first member.

    Attributes:
        members: newcomers included.
    """

    def __init__(self, host: WorkerRecord) -> None:
        self._host = host.number
        self.members = GroupMembers(host.number)
        self.members.add(host)
        self._unaware: dict[int, set[int]] = {}  # by newcomer: the members that do not know it yet

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
                self.members.remove(number)
                self._unaware.pop(number, None)
                return self._aware(list(self._unaware), number)

    def _asked(self, worker: WorkerRecord) -> list[Instruction]:
        number = self.members.number_of(worker)
        if number is not None:
            return [] if number in self._unaware else [Admit(number)]
        others = [each for each in self.members.numbers() if each != self._host]
        self.members.add(worker)
        self._unaware[worker.number] = set(others)
        return [*(Tell(to, worker) for to in others), *self._aware([worker.number], self._host)]

    def _aware(self, numbers: list[int], by: int) -> list[Instruction]:
        admitted = []
        for number in numbers:
            if (unaware := self._unaware.get(number)) is not None:
                unaware.discard(by)
                if not unaware:
                    del self._unaware[number]
                    admitted.append(Admit(number))
        return list(admitted)
