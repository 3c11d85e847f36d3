"""Workers of the job, found by number, rank or name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...base.errors import ArgumentKindError, UnknownWorkerError
from ...proto.rpc_pb2 import WorkerRecord
from ..device_maps import between
from ..wire.python_versions import difference
from .peer import Peer
from .worker_info import WorkerInfo, info_of
from .worker_records import WorkerRecords

GONE_BEFORE = "it was lost before this worker joined"


class Peers:
    """Workers of the job: none before the rendezvous, then all.

    A job may have many workers, and each communicates with few. So a ``Peer`` is made when this worker first sends to it,
    gets a message from it or looks it up. Until then there is only its record, still encoded.

    In a dynamic group a name or a rank may be used again; it means the last worker that has it. Numbers are used once.

    Attributes:
        by_number: the peers; it makes one that is looked up for the first time.
    """

    def __init__(self, me: WorkerRecord) -> None:
        self.me = me
        self._records = WorkerRecords.of(())  # a worker's number is its place in them
        self._later: list[int] = []  # numbers of the workers that have no place in the records
        self.by_number = _ByNumber(self._make)
        self._by_rank: dict[int, Peer] = {}
        self._by_name: dict[str, Peer] = {}
        self._gone: dict[int, Peer] = {}

    def fill(self, records: Iterable[WorkerRecord]) -> None:
        """Take the workers that the rendezvous has found."""
        table = records if isinstance(records, WorkerRecords) else WorkerRecords.of(records)
        if table.ranked:
            self._records = table
        else:
            for record in table:
                self.add(record)

    def remember(self, records: Iterable[WorkerRecord]) -> None:
        """Take workers that were lost before this one joined: calls to their names fail as calls to a lost worker."""
        for record in records:
            peer = self.by_number.setdefault(record.number, self._peer(record))
            self._by_rank.setdefault(record.rank, peer)
            self._by_name.setdefault(record.name, peer)
            self.mark_gone(peer, GONE_BEFORE)

    def add(self, record: WorkerRecord) -> Peer:
        """Take a worker, unless it is known."""
        if record.number not in self:
            self._later.append(record.number)
            peer = self._peer(record)
            self.by_number[record.number] = self._by_rank[record.rank] = self._by_name[record.name] = peer
        return self.at(record.number)

    def _make(self, number: int) -> Peer:
        """Make and return the peer of a record. If several threads do so at the same time, all get the first one's."""
        if not 0 <= number < len(self._records):
            return self._stranger(number)
        peer = self.by_number.setdefault(number, self._peer(self._records[number]))
        # In a dynamic group another worker may have its name or rank by now.
        self._by_rank.setdefault(peer.info.id, peer)
        self._by_name.setdefault(peer.info.name, peer)
        return peer

    def _stranger(self, number: int) -> Peer:
        """Return a worker that left the group before this one joined. A reference that this one is given may name it.

        Raises:
            UnknownWorkerError: there was none of this number, or it joins and this worker has not heard of it yet.
        """
        if not self.heard_of(number):
            raise UnknownWorkerError(
                f"{self.me.name!r} has not heard of the worker with number {number}: it is joining, or was lost before it had "
                f"joined; try again when it is in rpc.get_worker_infos()"
            )
        peer = self._peer(WorkerRecord(number=number, name=f"number {number}"))
        peer.mark_gone(GONE_BEFORE)
        return self.by_number.setdefault(number, peer)

    def _peer(self, record: WorkerRecord) -> Peer:
        me = self.me
        same_main = bool(me.main_script) and record.main_script == me.main_script
        versions = difference(me.name, me.python, record.name, record.python)
        return Peer(record, same_main or record.identity == me.identity, versions, between(me, record))

    # -- all workers, including those that are gone

    def __contains__(self, number: object) -> bool:
        return number in self.by_number or (isinstance(number, int) and 0 <= number < len(self._records))

    def heard_of(self, number: int) -> bool:
        """Return whether ``at`` finds a worker. It does not find one that joins, of which others have heard earlier."""
        return number in self or (bool(self._later) and 0 <= number < self.me.number)

    def __len__(self) -> int:
        return len(self._records) + len(self._later)

    def __iter__(self) -> Iterator[Peer]:
        """Iterate over all peers; those that were not made yet are made."""
        return map(self.at, self.numbers())

    def numbers(self) -> Sequence[int]:
        """Return the numbers of all: a ``range``, unless the job is a dynamic group."""
        first = range(len(self._records))
        return [*first, *self._later] if self._later else first

    def info(self, number: int) -> WorkerInfo:
        """Return name and rank of the worker of a number."""
        peer = self.by_number.get(number)
        return info_of(self._records[number]) if peer is None else peer.info

    def name(self, number: int) -> str:
        """Return the name of the worker of a number."""
        return self.info(number).name

    def identity(self, number: int) -> bytes:
        """Return the identity of the worker of a number, without making its peer."""
        peer = self.by_number.get(number)
        return (self._records[number] if peer is None else peer.record).identity

    # -- some of them

    def met(self) -> list[Peer]:
        """Return the peers that were made so far: those with which this worker communicates."""
        return list(self.by_number.values())

    def mark_gone(self, peer: Peer, reason: str) -> bool:
        """Mark a worker as gone; return False if it already was."""
        left = peer.mark_gone(reason)
        if left:
            self._gone[peer.number] = peer
        return left

    def gone(self) -> list[Peer]:
        """Return the workers that are lost or have left."""
        return list(self._gone.values())

    def live(self) -> list[WorkerInfo]:
        """Return name and rank of every worker that is not gone."""
        return [self.info(number) for number in self.numbers() if number not in self._gone]

    def names(self) -> set[str]:
        """Return the names of all workers, also of those that are gone."""
        return {self.name(number) for number in self.numbers()}.union(peer.info.name for peer in self.gone())

    # -- one of them

    def mine(self) -> Peer:
        """Return this worker."""
        return self.find(self.me.rank)

    def at(self, number: int) -> Peer:
        """Return the worker of a number, such as one in a message or a reference.

        Raises:
            UnknownWorkerError: this worker has not heard of it.
        """
        return self.by_number[number]

    def member(self, record: WorkerRecord) -> Peer | None:
        """Return the worker that a record describes; ``None`` if that incarnation is not in the job."""
        peer = self.at(record.number) if record.number in self else None
        return peer if peer is not None and peer.record.identity == record.identity else None

    def find(self, to: Any) -> Peer:
        """Return the worker of a name, a rank or a ``WorkerInfo`` that a user gave; a ``Peer`` is returned as it is.

        Raises:
            UnknownWorkerError: there is none.
            ArgumentKindError: ``to`` is none of these.
        """
        if isinstance(to, str):
            peer = self._by_name.get(to) or self._in_records(self._records.place_of(to))
        elif isinstance(to, Peer):
            return to
        elif isinstance(to, WorkerInfo):
            return self.find(to.name)
        elif isinstance(to, int) and not isinstance(to, bool):
            peer = self._by_rank.get(to) or self._in_records(to)
        else:
            raise ArgumentKindError(f"you named a worker by {to!r}; use its name, its rank or its WorkerInfo")
        if peer is None:
            known = ", ".join(f"{info.name!r} ({info.id})" for info in self.live())
            raise UnknownWorkerError(f"there is no worker {to!r} in this job; its workers are {known}")
        return peer

    def _in_records(self, place: int) -> Peer | None:
        return self.at(place) if 0 <= place < len(self._records) else None


class _ByNumber(dict[int, Peer]):
    """Dictionary of peers by number, which makes a missing one."""

    def __init__(self, make: Callable[[int], Peer]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> Peer:
        return self._make(number)
