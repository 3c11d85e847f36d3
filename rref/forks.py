"""The user's side of the ownership protocol: the forks that a worker holds, and those that it gave away."""

from __future__ import annotations

from enum import Enum

from ..core.futures import Future, copy_error
from .ids import ForkId, RRefId, WorkerKey

UNSENT = -1  # in place of a carrier's number: the fork did not travel, or its arrival is known


class State(Enum):
    """What the holder of a fork knows about it."""

    PENDING = "pending"  # the owner has not answered
    CONFIRMED = "confirmed"
    FAILED = "failed"


class Fork:
    """A handle at this worker: the one record of it, which the ``RRef`` object points to, and never the other way round.

    The machine changes the state; ``error`` and ``settled`` are its driver's.
    """

    __slots__ = (
        "carrier", "children", "dropped", "error", "fork_id", "forker", "owner", "rref_id", "settled", "state",
    )  # fmt: skip

    def __init__(self, rref_id: RRefId, fork_id: ForkId, owner: WorkerKey, state: State = State.PENDING) -> None:
        self.rref_id = rref_id
        self.fork_id = fork_id
        self.owner = owner
        self.state = state
        self.forker: WorkerKey | None = None  # who keeps its own handle until the owner has answered about ours
        self.carrier = UNSENT  # of the creating call
        self.children = 0  # pending ones
        self.dropped = False
        self.error: BaseException | None = None  # each use of the reference raises it
        self.settled: Future[None] = Future()  # the owner has answered, in one way or the other

    @property
    def creating(self) -> bool:
        """Whether ``remote`` made it here: then it may fetch before the owner has answered."""
        return self.carrier != UNSENT

    def check(self) -> None:
        """Raise if the reference is known to have no value."""
        if self.error is not None:
            raise copy_error(self.error)


class Child:
    """A fork that we gave away and whose holder has not heard from the owner yet: it keeps our own ``parent``."""

    __slots__ = ("carrier", "parent", "to")

    def __init__(self, parent: ForkId, to: WorkerKey, carrier: int) -> None:
        self.parent = parent
        self.to = to
        self.carrier = carrier
