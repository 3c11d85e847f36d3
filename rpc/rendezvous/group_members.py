"""Members of a dynamic group: a pure state machine. Each that joins gets the next number, which is never used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import RendezvousError

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord

MOST_NUMBERS = 1 << 16  # ids of references, contexts and messages have 16 bits for a worker
GOODBYE_SECONDS = 3.0  # time for the goodbye of a worker that has just left to be read


class GroupMembers:
    """Workers that are in the group now.

    Args:
        first: number of the first worker that joins.
    """

    def __init__(self, first: int = 0) -> None:
        self._members: dict[int, WorkerRecord] = {}
        self._next = first

    def add(self, worker: WorkerRecord) -> None:
        """Give a worker its number, and take it as a member.

        Raises:
            RendezvousError: as ``check`` does.
        """
        self.check(worker)
        worker.number, self._next = self._next, self._next + 1
        self._members[worker.number] = worker

    def check(self, worker: WorkerRecord) -> None:
        """Raise if a worker cannot join now.

        Raises:
            RendezvousError: no number is left, or another member has its name or rank.
        """
        if (holder := self.holder(worker)) is not None:
            raise RendezvousError(
                f"worker {worker.name!r} (rank {worker.rank}, process {worker.process_id}) cannot join: worker "
                f"{holder.name!r} (process {holder.process_id}) has that name or rank {holder.rank}, and has not left"
            )
        if self._next >= MOST_NUMBERS:
            raise RendezvousError(
                f"{self._next} workers have joined this group since it began, and no more can join; start a new group"
            )

    def remove(self, number: int) -> None:
        """Forget the member of a number, if there is one."""
        self._members.pop(number, None)

    def holder(self, worker: WorkerRecord) -> WorkerRecord | None:
        """Return the other member that has the worker's name or rank."""
        held = (each for each in self._members.values() if each.name == worker.name or each.rank == worker.rank)
        return next((each for each in held if each.identity != worker.identity), None)

    def number_of(self, worker: WorkerRecord) -> int | None:
        """Return the number of a worker that is a member."""
        return next((each.number for each in self._members.values() if each.identity == worker.identity), None)

    def numbers(self) -> list[int]:
        """Return the numbers of the members."""
        return list(self._members)

    def records(self) -> list[WorkerRecord]:
        """Return the records of the members, in the order of their numbers."""
        return list(self._members.values())
