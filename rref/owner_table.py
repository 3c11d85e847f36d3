"""The owner's side of the ownership protocol: which forks of its references exist, and which ids are gone for good."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from ..core.futures import Future
from ..rpc.extend import IntervalSet
from .forks import UNSENT
from .ids import ForkId, RRefId, WorkerKey
from .protocol import Free, Instruction, NeverCreated


class Claimed(Enum):
    """What the table says to a fork that wants to be registered."""

    ACCEPTED = "accepted"
    EARLY = "early"  # registered, but the creating call is still to come: the answer follows
    GONE = "gone"


class Owned:
    """A reference whose owner is this worker: the one record of it.

    Until it is ``created`` it holds only what overtook the creating call: claims, and the creator's own fetches.
    """

    __slots__ = ("created", "forks", "value")

    def __init__(self, created: bool) -> None:
        self.created = created
        self.value: Future[Any] | None = None  # made by the driver when it is first asked for
        self.forks: dict[ForkId, tuple[WorkerKey, int]] = {}  # holder, and the carrier that may be on its way to it


class OwnerTable:
    """References owned by ``me``, with their forks. ``lost`` and ``outbox`` are the machine's own."""

    def __init__(self, me: WorkerKey, lost: set[WorkerKey], outbox: list[Instruction]) -> None:
        self._me = me
        self._lost = lost
        self._outbox = outbox
        self._owned: dict[RRefId, Owned] = {}
        self._freed: dict[WorkerKey, IntervalSet] = {}  # by creator: numbers that will never come, or come again

    def __len__(self) -> int:
        return len(self._owned)

    def __contains__(self, rref_id: RRefId) -> bool:
        return rref_id in self._owned

    def __iter__(self) -> Iterator[Owned]:
        return iter(list(self._owned.values()))

    def get(self, rref_id: RRefId) -> Owned | None:
        """The record of a reference, created or awaited."""
        return self._owned.get(rref_id)

    def awaited(self, rref_id: RRefId) -> Owned:
        """The record of a reference; one that waits for its creating call, if there is none."""
        return self._owned.setdefault(rref_id, Owned(created=False))

    def is_created(self, rref_id: RRefId) -> bool:
        """Whether the reference exists, and is not only awaited."""
        owned = self._owned.get(rref_id)
        return owned is not None and owned.created

    def forks(self, rref_id: RRefId) -> dict[ForkId, WorkerKey]:
        """The registered forks and who holds each."""
        owned = self._owned.get(rref_id)
        return {} if owned is None else {fork_id: holder for fork_id, (holder, _) in owned.forks.items()}

    def may_come(self, rref_id: RRefId) -> bool:
        """Whether the creating call of an id that is not here may still arrive."""
        creator = rref_id.maker
        freed = self._freed.get(creator)
        return creator != self._me and creator not in self._lost and (freed is None or rref_id.number not in freed)

    def create(self, rref_id: RRefId, fork_id: ForkId, holder: WorkerKey) -> list[tuple[WorkerKey, ForkId]]:
        """The reference exists from now on; returns the early forks that can be accepted now."""
        owned = self._owned.setdefault(rref_id, Owned(created=True))
        owned.created = True
        early = [(holder, fork_id) for fork_id, (holder, _) in owned.forks.items()]
        owned.forks[fork_id] = (holder, UNSENT)
        return early

    def register(self, rref_id: RRefId, fork_id: ForkId, holder: WorkerKey, carrier: int) -> None:
        """The owner gives a fork away."""
        self._owned[rref_id].forks[fork_id] = (holder, carrier)

    def claim(self, rref_id: RRefId, fork_id: ForkId, holder: WorkerKey) -> Claimed:
        """Someone else gave this fork to ``holder``."""
        owned = self._owned.get(rref_id)
        if owned is None:
            if not self.may_come(rref_id):
                return Claimed.GONE
            owned = self.awaited(rref_id)
        owned.forks[fork_id] = (holder, UNSENT)
        return Claimed.ACCEPTED if owned.created else Claimed.EARLY

    def unregister(self, rref_id: RRefId, fork_id: ForkId) -> tuple[WorkerKey, int] | None:
        """The fork is gone; returns its holder and the carrier that took it there, None if it was not registered."""
        owned = self._owned.get(rref_id)
        registration = owned.forks.pop(fork_id, None) if owned is not None else None
        if owned is not None and registration is not None:
            self._free_if_unused(rref_id, owned)
        return registration

    def never_created(self, rref_id: RRefId) -> list[tuple[WorkerKey, ForkId]]:
        """The creating call will not come; returns the early forks, to be rejected."""
        self._mark_freed(rref_id)
        owned = self._owned.pop(rref_id, None)
        self._outbox.append(NeverCreated(rref_id, None if owned is None else owned.value))
        return [] if owned is None else [(holder, fork_id) for fork_id, (holder, _) in owned.forks.items()]

    def worker_lost(self, key: WorkerKey) -> Iterator[RRefId]:
        """Forget the forks of ``key``; yields the references that it was to create and now never will."""
        for rref_id, owned in list(self._owned.items()):
            if not owned.created and rref_id.maker == key:
                yield rref_id
                continue
            owned.forks = {fork_id: entry for fork_id, entry in owned.forks.items() if entry[0] != key}
            self._free_if_unused(rref_id, owned)
        self._freed.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._owned.clear()
        self._freed.clear()

    def _free_if_unused(self, rref_id: RRefId, owned: Owned) -> None:
        if owned.forks or (not owned.created and owned.value is not None):
            return  # a fetch waits for it
        del self._owned[rref_id]
        if owned.created:
            self._mark_freed(rref_id)
            self._outbox.append(Free(rref_id, owned.value))

    def _mark_freed(self, rref_id: RRefId) -> None:
        # Of our own ids and those of the lost, an unknown one is a freed one: no need to write them down.
        if rref_id.maker != self._me and rref_id.maker not in self._lost:
            self._freed.setdefault(rref_id.maker, IntervalSet()).add(rref_id.number)
