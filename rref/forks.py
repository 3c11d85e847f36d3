"""The user's side of the ownership protocol: the forks that a worker holds, and those that it gave away."""

from __future__ import annotations

from enum import Enum

from .ids import ForkId, RRefId, WorkerKey

UNSENT = -1  # in place of a carrier's number: the fork did not travel, or its arrival is known


class State(Enum):
    """What the holder of a fork knows about it."""

    PENDING = "pending"  # the owner has not answered
    CONFIRMED = "confirmed"
    FAILED = "failed"


class Fork:
    """A handle at this worker."""

    __slots__ = ("carrier", "children", "dropped", "forker", "owner", "rref_id", "state")

    def __init__(self, rref_id: RRefId, owner: WorkerKey, state: State = State.PENDING) -> None:
        self.rref_id = rref_id
        self.owner = owner
        self.state = state
        self.forker: WorkerKey | None = None  # who keeps its own handle until the owner has answered about ours
        self.carrier = UNSENT  # of the creating call
        self.children = 0  # pending ones
        self.dropped = False


class Child:
    """A fork that we gave away and whose holder has not heard from the owner yet: it keeps our own ``parent``."""

    __slots__ = ("carrier", "parent", "to")

    def __init__(self, parent: ForkId, to: WorkerKey, carrier: int) -> None:
        self.parent = parent
        self.to = to
        self.carrier = carrier
