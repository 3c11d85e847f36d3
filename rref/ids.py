"""Ids of workers, references and forks, and the counters from which they come."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

# Each owner gets the ids of references in blocks of so many. So an owner's set of freed ids is a few intervals, even if the
# creator makes references on many owners.
BLOCK = 1024


class WorkerKey(NamedTuple):
    """Incarnation of a worker. A restarted worker has the same name and rank, and another incarnation."""

    number: int
    incarnation: int = 0

    def __str__(self) -> str:
        return f"{self.number}.{self.incarnation}" if self.incarnation else str(self.number)


class GlobalId(NamedTuple):
    """Id that is unique in the job: it has the worker that made it, the incarnation, and a number."""

    worker: int
    incarnation: int
    number: int

    @property
    def created_on(self) -> WorkerKey:
        """Return the worker that made the id: the creator of a reference, or the worker that gave a fork."""
        return WorkerKey(self.worker, self.incarnation)

    def __str__(self) -> str:
        return f"{self.created_on}/{self.number}"


RRefId: TypeAlias = GlobalId
ForkId: TypeAlias = GlobalId


class IdSource:
    """Source of the ids that one worker makes."""

    def __init__(self, me: WorkerKey) -> None:
        self._me = me
        self._last_fork = 0
        self._next_block = 0
        self._next_rref: dict[WorkerKey, int] = {}

    def fork(self) -> ForkId:
        """Return a new fork id."""
        self._last_fork += 1
        return GlobalId(*self._me, self._last_fork)

    def rref(self, owner: WorkerKey) -> RRefId:
        """Return a new reference id, from the block of ``owner``."""
        number = self._next_rref.get(owner, 0)
        if number % BLOCK == 0:
            number = self._next_block * BLOCK
            self._next_block += 1
        self._next_rref[owner] = number + 1
        return GlobalId(*self._me, number)

    def owner_lost(self, owner: WorkerKey) -> None:
        """Skip the rest of the block of a lost owner."""
        self._next_rref.pop(owner, None)
