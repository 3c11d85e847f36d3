"""Members of a rendezvous so far: a pure state machine, used by every rendezvous (gRPC, a file).

The first contradiction (two workers of one name or rank, two world sizes) fails the whole rendezvous, because it can never
be complete: every waiting worker gets the reason at once. A joiner whose connection broke is removed, and may join again;
another process may join in its place.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ...base.errors import RendezvousError
from ..lanes.addresses import first_host

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord

SHOWN = 16  # missing ranks that a message names


class MemberList:
    """Workers that have joined so far."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size
        self.failure = ""
        self._by_rank: dict[int, WorkerRecord] = {}
        self._by_name: dict[str, WorkerRecord] = {}
        self._connections: dict[int, object] = {}  # the one on which each rank joined last

    def join(self, worker: WorkerRecord, world_size: int, connection: object = None) -> None:
        """Add a worker that joined, perhaps again because it lost its connection.

        Args:
            worker: its record.
            world_size: number of workers, as it says.
            connection: where it joined, for ``leave``.

        Raises:
            RendezvousError: it contradicts the others, or another has before; every later joiner gets the same error.
        """
        if self.has(worker):
            self._connections[worker.rank] = connection
            return
        self.failure = self.failure or self._contradiction(worker, world_size)
        if self.failure:
            raise RendezvousError(self.failure)
        self._by_rank[worker.rank] = self._by_name[worker.name] = worker
        self._connections[worker.rank] = connection

    def forget(self, worker: WorkerRecord, connection: object) -> bool:
        """Forget a worker whose connection ended before all had joined, unless it has joined again on another.

        Args:
            worker: its record.
            connection: the one that ended.

        Returns:
            True if it is no member any more.
        """
        if self.complete or not self.has(worker) or self._connections[worker.rank] is not connection:
            return False
        del self._by_rank[worker.rank], self._by_name[worker.name], self._connections[worker.rank]
        return True

    def has(self, worker: WorkerRecord) -> bool:
        """Return whether a worker has joined."""
        present = self._by_rank.get(worker.rank)
        return present is not None and present.identity == worker.identity

    def has_left(self, worker: WorkerRecord) -> bool:
        """Return whether all have joined, and the worker's place has another agent of its process: that job is ending."""
        present = self._by_rank.get(worker.rank) if self.complete else None
        return present is not None and present.process_id == worker.process_id and not self.has(worker)

    @property
    def complete(self) -> bool:
        """Return whether all have joined."""
        return len(self._by_rank) == self.world_size

    def workers(self) -> list[WorkerRecord]:
        """Return all workers, by rank."""
        return [self._by_rank[rank] for rank in sorted(self._by_rank)]

    def speaks_for_its_host(self, worker: WorkerRecord) -> bool:
        """Return whether a worker has the lowest rank of those that joined from its host: notices of all would say the same."""
        host = first_host(worker.addresses)
        return (
            min((rank for rank, other in self._by_rank.items() if first_host(other.addresses) == host), default=-1)
            == worker.rank
        )

    def missing(self) -> str:
        """Return the ranks that have not joined yet, in words."""
        absent = list(islice((rank for rank in range(self.world_size) if rank not in self._by_rank), SHOWN + 1))
        shown = ", ".join(map(str, absent[:SHOWN])) + (", ..." if len(absent) > SHOWN else "")
        return f"{len(self._by_rank)} of {self.world_size} workers came; rank{'s' * (len(absent) > 1)} {shown} did not"

    def _contradiction(self, worker: WorkerRecord, world_size: int) -> str:
        subject = f"worker {worker.name!r} (rank {worker.rank}, process {worker.process_id})"
        if world_size != self.world_size:
            return f"{subject} says world_size={world_size}, others say {self.world_size}; give every worker the same"
        if worker.rank >= self.world_size:
            return f"{subject} has a rank beyond world_size={self.world_size}; ranks go from 0 to {self.world_size - 1}"
        if (other := self._by_rank.get(worker.rank)) is not None:
            return f"{subject} and worker {other.name!r} (process {other.process_id}) both have rank {worker.rank}"
        if (other := self._by_name.get(worker.name)) is not None:
            return f"{subject} has the name of rank {other.rank} (process {other.process_id}); give each worker its own name"
        return ""
