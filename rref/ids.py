"""Ids of workers, references and forks, and the counters that they come from."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

# Reference ids are given out in blocks of this many per owner, so that an owner's set of freed ids is a few intervals
# even if the creator spreads its references over many owners.
BLOCK = 1024


class WorkerKey(NamedTuple):
    """One incarnation of a worker: a restarted worker has the same rank and another incarnation."""

    rank: int
    incarnation: int = 0

    def __str__(self) -> str:
        return f"{self.rank}.{self.incarnation}" if self.incarnation else str(self.rank)


class GlobalId(NamedTuple):
    """Id that no other worker, and no other incarnation of the same worker, gives out."""

    worker: int
    incarnation: int
    number: int

    @property
    def created_on(self) -> WorkerKey:
        """The worker that made the id: the creator of a reference, or the parent of a fork."""
        return WorkerKey(self.worker, self.incarnation)

    def __str__(self) -> str:
        return f"{self.created_on}/{self.number}"


RRefId: TypeAlias = GlobalId
ForkId: TypeAlias = GlobalId


class IdSource:
    """Source of the ids that one worker gives out."""

    def __init__(self, me: WorkerKey) -> None:
        self._me = me
        self._last_fork = 0
        self._next_block = 0
        self._next_rref: dict[WorkerKey, int] = {}

    def fork(self) -> ForkId:
        """Return a fork id never given out before."""
        self._last_fork += 1
        return GlobalId(*self._me, self._last_fork)

    def rref(self, owner: WorkerKey) -> RRefId:
        """Return a reference id never given out before, from the block of ``owner``."""
        number = self._next_rref.get(owner, 0)
        if number % BLOCK == 0:
            number = self._next_block * BLOCK
            self._next_block += 1
        self._next_rref[owner] = number + 1
        return GlobalId(*self._me, number)

    def owner_lost(self, owner: WorkerKey) -> None:
        """Skip the rest of the block of a lost owner."""
        self._next_rref.pop(owner, None)
