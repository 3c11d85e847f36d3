"""Owner's side of the ownership protocol: the registered forks of its references, and the ids of freed references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from ..core.futures import Future
from ..rpc.extend import IntervalSet
from .ids import ForkId, RRefId, WorkerKey
from .protocol import Free, Instruction, NeverCreated, NeverMade
from .transfers import ReferenceTransfer


class RegisterAnswer(Enum):
    """Answer to a request to register a fork that another user gave."""

    ACCEPTED = "accepted"
    EARLY = "early"  # registered, but the creating call has not arrived: the answer follows when it does
    REJECTED = "rejected"


class Owned:
    """Record of a reference at its owner.

    Until it is ``created`` it has only the forks and the fetches that overtook the creating call.
    """

    __slots__ = ("created", "forks", "value")

    def __init__(self, created: bool) -> None:
        self.created = created
        self.value: Future[Any] | None = None  # made when it is first asked for
        # By id of a fork: its holder, and the transfer that may be on its way to the holder.
        self.forks: dict[ForkId, tuple[WorkerKey, ReferenceTransfer | None]] = {}

    @property
    def made(self) -> bool:
        """Return whether the value is there, or the error that it could not be made with."""
        return self.value is not None and self.value.done()

    def future(self) -> Future[Any]:
        """Return the future of the value, also if the creating call has not arrived yet."""
        if self.value is None:
            self.value = Future()
        return self.value


class OwnerTable:
    """References owned by ``me``, with their forks.

    Args:
        me: the owner.
        lost: lost workers; the ownership machine adds to it.
        is_gone: returns whether a worker is gone of whose loss the machine was not told, because its worker joined later.
        emit: gets instructions for the driver.
    """

    def __init__(
        self,
        me: WorkerKey,
        lost: set[WorkerKey],
        is_gone: Callable[[WorkerKey], bool],
        emit: Callable[[Instruction], None],
    ) -> None:
        self._me = me
        self._lost = lost
        self._is_gone = is_gone
        self._emit = emit
        self._owned: dict[RRefId, Owned] = {}
        self._freed: dict[WorkerKey, IntervalSet] = {}  # by creator: numbers of freed references
        self._not_created: dict[WorkerKey, IntervalSet] = {}  # those of them whose creating call did not arrive

    def __len__(self) -> int:
        return len(self._owned)

    def __iter__(self) -> Iterator[RRefId]:
        return iter(list(self._owned))

    def by_id(self) -> dict[RRefId, Owned]:
        """Return the records of all values, by reference."""
        return dict(self._owned)

    def records(self) -> list[Owned]:
        """Return the records of all values."""
        return list(self._owned.values())

    def get(self, rref_id: RRefId) -> Owned | None:
        """Return the record of a reference, created or awaited."""
        return self._owned.get(rref_id)

    def awaited(self, rref_id: RRefId) -> Owned:
        """Return the record of a reference; if there is none, a new one that waits for the creating call."""
        return self._owned.setdefault(rref_id, Owned(created=False))

    def is_created(self, rref_id: RRefId) -> bool:
        """Return whether the creating call of a reference has arrived."""
        owned = self._owned.get(rref_id)
        return owned is not None and owned.created

    def may_come(self, rref_id: RRefId) -> bool:
        """Return whether the creating call of an id that is not in the table may still arrive."""
        creator = rref_id.created_on
        if creator == self._me or creator in self._lost or rref_id.number in self.freed(creator):
            return False
        return not self._is_gone(creator)

    def freed(self, creator: WorkerKey) -> IntervalSet:
        """Return the numbers of a creator's references that are freed."""
        return self._freed.get(creator, _NONE)

    def was_not_created(self, rref_id: RRefId) -> bool:
        """Return whether it is known that the creating call of a reference did not arrive, and never will."""
        return rref_id.number in self._not_created.get(rref_id.created_on, _NONE)

    def value(self, rref_id: RRefId) -> Future[Any] | None:
        """Return the future of a value, also if it may still be created; ``None`` if there will be no value."""
        owned = self._expected(rref_id)
        return None if owned is None else owned.future()

    def forks_of(self, rref_id: RRefId) -> dict[ForkId, WorkerKey]:
        """Return the registered forks of a reference, each with its holder."""
        owned = self._owned.get(rref_id)
        return {} if owned is None else {fork_id: holder for fork_id, (holder, _) in owned.forks.items()}

    def holders(self) -> set[WorkerKey]:
        """Return the workers that hold forks."""
        return {key for owned in self._owned.values() for key, _ in owned.forks.values()}

    def held_by(self, holder: WorkerKey) -> list[Owned]:
        """Return the records of the references of which a worker holds forks, once for each fork."""
        return [owned for owned in self._owned.values() for key, _ in owned.forks.values() if key == holder]

    def create(self, rref_id: RRefId, fork_id: ForkId, holder: WorkerKey) -> list[tuple[WorkerKey, ForkId]]:
        """Create the reference; return the early forks, which can be accepted now.

        Args:
            rref_id: the reference.
            fork_id: the creator's fork.
            holder: the creator.
        """
        owned = self._owned.setdefault(rref_id, Owned(created=True))
        owned.created = True
        early = [(holder, fork_id) for fork_id, (holder, _) in owned.forks.items()]
        owned.forks[fork_id] = (holder, None)
        return early

    def register(self, rref_id: RRefId, fork_id: ForkId, transfer: ReferenceTransfer) -> None:
        """Register a fork that the owner gives.

        Args:
            rref_id: the reference.
            fork_id: the fork.
            transfer: carries the fork to its holder.
        """
        self._owned[rref_id].forks[fork_id] = (transfer.peer, transfer)

    def request(self, rref_id: RRefId, fork_id: ForkId, holder: WorkerKey) -> RegisterAnswer:
        """Register a fork that another user gave to ``holder``, if the value exists or may still be created.

        Args:
            rref_id: the reference.
            fork_id: the fork.
            holder: the worker that has the fork.
        """
        if (owned := self._expected(rref_id)) is None:
            return RegisterAnswer.REJECTED
        owned.forks[fork_id] = (holder, None)
        return RegisterAnswer.ACCEPTED if owned.created else RegisterAnswer.EARLY

    def unregister(self, rref_id: RRefId, fork_id: ForkId) -> ReferenceTransfer | None:
        """Remove a fork, if it is registered; return the transfer that carried it to its holder."""
        owned = self._owned.get(rref_id)
        if owned is None or fork_id not in owned.forks:
            return None
        _, transfer = owned.forks.pop(fork_id)
        self._free_if_unused(rref_id, owned)
        return transfer

    def never_created(self, rref_id: RRefId) -> list[tuple[WorkerKey, ForkId]]:
        """Note that the creating call will not arrive; return the early forks, which must be rejected."""
        self._mark(rref_id, self._freed)
        self._mark(rref_id, self._not_created)
        owned = self._owned.pop(rref_id, None)
        self._emit(NeverCreated(rref_id, None if owned is None else owned.value))
        return [] if owned is None else [(holder, fork_id) for fork_id, (holder, _) in owned.forks.items()]

    def never_made(self, rref_id: RRefId) -> None:
        """Note that this worker's creating call to itself will not arrive. Its forks keep the reference."""
        if (owned := self._owned.get(rref_id)) is not None:
            self._emit(NeverMade(rref_id, owned.future()))

    def worker_lost(self, key: WorkerKey) -> Iterator[RRefId]:
        """Forget the forks of ``key``; yield the references that it would have created, for which forks or fetches wait."""
        for rref_id, owned in list(self._owned.items()):
            if not owned.created and rref_id.created_on == key:
                yield rref_id
                continue
            owned.forks = {fork_id: entry for fork_id, entry in owned.forks.items() if entry[0] != key}
            self._free_if_unused(rref_id, owned)
        self._freed.pop(key, None)
        self._not_created.pop(key, None)

    def clear(self) -> list[Owned]:
        """Forget everything, and return the records."""
        owned = list(self._owned.values())
        self._owned.clear()
        self._freed.clear()
        self._not_created.clear()
        return owned

    def _expected(self, rref_id: RRefId) -> Owned | None:
        """Return the record of a reference, a new one if its creating call may still arrive; ``None`` if it will not."""
        owned = self._owned.get(rref_id)
        return self.awaited(rref_id) if owned is None and self.may_come(rref_id) else owned

    def _free_if_unused(self, rref_id: RRefId, owned: Owned) -> None:
        if owned.forks or (not owned.created and owned.value is not None):
            return  # a fetch waits for it
        del self._owned[rref_id]
        if owned.created:
            self._mark(rref_id, self._freed)
            self._emit(Free(rref_id, owned.value))

    def _mark(self, rref_id: RRefId, numbers: dict[WorkerKey, IntervalSet]) -> None:
        # Of this worker's ids, and of those of lost workers, all that are not in the table are freed: they need no set.
        creator = rref_id.created_on
        if creator != self._me and creator not in self._lost:
            numbers.setdefault(creator, IntervalSet()).add(rref_id.number)


_NONE = IntervalSet()
