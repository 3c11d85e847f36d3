"""Members of a group: a pure state machine. Each that joins gets the next number, which is never used again.

The group is open, or it has as many places as a job of fixed size has ranks. Such a job begins when all places are taken: those
workers are its founders. Later a worker may take the place of one that has left or was lost, under the same name. If all have
left, the job begins anew.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ...base.errors import RendezvousError
from ...base.words import abridged
from .members import SHOWN

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord

MOST_NUMBERS = 1 << 16  # ids of references, contexts and messages have 16 bits for a worker
GOODBYE_SECONDS = 3.0  # time for the goodbye of a worker that has just left to be read


class GroupMembers:
    """Workers that are in the group now.

    Args:
        first: number of the first worker that joins.
        places: number of ranks; 0 for an open group.

    Attributes:
        founders: members when all places were taken first; none before, and in an open group.
    """

    def __init__(self, first: int = 0, places: int = 0) -> None:
        self.places = places
        self.founders: list[WorkerRecord] = []
        self._members: dict[int, WorkerRecord] = {}
        self._holders: dict[int, list[WorkerRecord]] = {}  # by rank: the workers that had it since the job began
        self._next = first

    def add(self, worker: WorkerRecord) -> None:
        """Give a worker its number, and take it as a member.

        Raises:
            RendezvousError: as ``check`` does.
        """
        self.check(worker)
        worker.number, self._next = self._next, self._next + 1
        self._members[worker.number] = worker
        self._holders.setdefault(worker.rank, []).append(worker)
        if self.places and not self.founders and len(self._members) == self.places:
            self.founders = self.records()
            self._holders = {each.rank: [each] for each in self.founders}

    def check(self, worker: WorkerRecord) -> None:
        """Raise if a worker cannot join now.

        Raises:
            RendezvousError: no number is left, another member has its name or rank, or that rank has another name.
        """
        if self.founders and (before := self._holders[worker.rank][-1]).name != worker.name:
            raise RendezvousError(
                f"worker {worker.name!r} cannot have rank {worker.rank}, which is that of worker {before.name!r} in this job; "
                f"a worker that is started again keeps its name and its rank"
            )
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
        if not self._members:
            self.founders = []

    def holder(self, worker: WorkerRecord) -> WorkerRecord | None:
        """Return the other member that has the worker's name or rank."""
        held = (each for each in self._members.values() if each.name == worker.name or each.rank == worker.rank)
        return next((each for each in held if each.identity != worker.identity), None)

    def number_of(self, worker: WorkerRecord) -> int | None:
        """Return the number of a worker that is a member."""
        return next((each.number for each in self._members.values() if each.identity == worker.identity), None)

    def absent(self, number: int, known: Collection[int]) -> list[WorkerRecord]:
        """Return the last worker of each place before a joiner if the joiner does not know it; none before the job has begun.

        Such a worker is lost or has left, though the log may not say so yet. Its successor may have written that it joins.

        Args:
            number: of the joiner.
            known: numbers of the members that it knows.
        """
        earlier = ([each for each in holders if each.number <= number] for holders in self._holders.values())
        return [each[-1] for each in earlier if self.founders and each[-1].number not in known]

    def missing(self) -> str:
        """Return which ranks no member has, in words."""
        taken = {each.rank for each in self._members.values()}
        absent = [rank for rank in range(self.places) if rank not in taken]
        shown = abridged([*map(str, absent)], SHOWN, "more")
        return f"{len(taken)} of {self.places} workers came; rank{'s' * (len(absent) > 1)} {shown} did not"

    def numbers(self) -> list[int]:
        """Return the numbers of the members."""
        return list(self._members)

    def records(self) -> list[WorkerRecord]:
        """Return the records of the members, in the order of their numbers."""
        return list(self._members.values())
