"""Fork of a reference at the worker that holds it: its states, and the table of its transitions.

``FORK_TRANSITIONS`` is the whole behaviour of a fork. ``PROTOCOL.md`` has the same table, and a test compares the two.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..base.errors import IllegalEventError
from ..core.futures import Future, copy_error
from .ids import ForkId, RRefId, WorkerKey


class State(Enum):
    """State of a fork at its holder."""

    PENDING = "pending"  # the owner has not answered
    CONFIRMED = "confirmed"  # the owner has registered the fork
    FAILED = "failed"  # there is no value, and each use raises the reason
    RELEASED = "released"  # nothing uses the fork any more, and the owner has not answered
    DELETED = "deleted"  # the record is gone

    __hash__ = object.__hash__  # that of enumerations is written in Python


class ForkEvent(Enum):
    """Event that changes the state of a fork."""

    ACCEPT = "accept"  # the owner has registered the fork
    REJECT = "reject"  # the owner has no such value, and never will
    OWNER_LOST = "owner lost"
    RELEASE = "release"  # the RRef was dropped, and no child is pending

    __hash__ = object.__hash__


class ForkAction(Enum):
    """Instruction that a transition gives."""

    CONFIRM = "confirm"  # the owner keeps the value for the RRef
    FAIL = "fail"  # each use of the RRef raises the reason
    ACKNOWLEDGE = "acknowledge"  # the parent need not be kept for this fork any more
    DELETE = "delete"  # the owner may forget this fork


FORK_TRANSITIONS: dict[tuple[State, ForkEvent], tuple[State, tuple[ForkAction, ...]]] = {
    (State.PENDING, ForkEvent.ACCEPT): (State.CONFIRMED, (ForkAction.CONFIRM, ForkAction.ACKNOWLEDGE)),
    (State.PENDING, ForkEvent.REJECT): (State.FAILED, (ForkAction.FAIL, ForkAction.ACKNOWLEDGE)),
    (State.PENDING, ForkEvent.OWNER_LOST): (State.FAILED, (ForkAction.FAIL, ForkAction.ACKNOWLEDGE)),
    (State.PENDING, ForkEvent.RELEASE): (State.RELEASED, ()),
    (State.CONFIRMED, ForkEvent.OWNER_LOST): (State.FAILED, (ForkAction.FAIL,)),
    (State.CONFIRMED, ForkEvent.RELEASE): (State.DELETED, (ForkAction.DELETE,)),
    (State.FAILED, ForkEvent.OWNER_LOST): (State.FAILED, ()),
    (State.FAILED, ForkEvent.RELEASE): (State.DELETED, ()),
    (State.RELEASED, ForkEvent.ACCEPT): (State.DELETED, (ForkAction.ACKNOWLEDGE, ForkAction.DELETE)),
    (State.RELEASED, ForkEvent.REJECT): (State.DELETED, (ForkAction.ACKNOWLEDGE,)),
    (State.RELEASED, ForkEvent.OWNER_LOST): (State.DELETED, (ForkAction.ACKNOWLEDGE,)),
}


class Fork:
    """Record of a fork at its holder. An ``RRef`` refers to its fork; the fork must not refer to the ``RRef``.

    The driver changes ``call``, ``error`` and ``settled``. Everything else is changed by the ownership machine.

    Args:
        rref_id: the reference.
        fork_id: the fork.
        owner: the worker that owns the value.
        state: the fork's first state.
    """

    __slots__ = (
        "call",
        "children",
        "created_here",
        "dropped",
        "error",
        "fork_id",
        "owner",
        "parent_holder",
        "rref_id",
        "settled",
        "state",
    )

    def __init__(self, rref_id: RRefId, fork_id: ForkId, owner: WorkerKey, state: State = State.PENDING) -> None:
        self.rref_id = rref_id
        self.fork_id = fork_id
        self.owner = owner
        self.state = state
        self.created_here = False  # by a creating call of this worker
        self.parent_holder: WorkerKey | None = None  # worker that keeps the parent until the owner has answered
        self.children = 0  # pending children: the owner has not answered about them
        self.dropped = False  # the RRef is gone, or its creation has failed
        self.call: Any = None  # the creating call, as long as it is under way
        self.error: BaseException | None = None  # each use of the reference raises it
        self.settled: Future[None] = Future()  # completes when the owner has accepted or rejected the fork, or is lost

    def handle(self, event: ForkEvent) -> tuple[ForkAction, ...]:
        """Change the state, and return the instructions that follow.

        Raises:
            IllegalEventError: the event cannot happen in this state.
        """
        transition = FORK_TRANSITIONS.get((self.state, event))
        if transition is None:
            raise IllegalEventError(
                f"fork {self.fork_id} of RRef {self.rref_id} is {self.state.value}, which does not allow the event "
                f"{event.value!r}; use one version of telegrad for all workers, and report this"
            )
        self.state, actions = transition
        return actions

    @property
    def awaits_owner(self) -> bool:
        """Return whether another user gave the fork, and the owner has not answered about it."""
        return self.state is State.PENDING and not self.created_here

    def check(self) -> None:
        """Raise the reason if it is known that the reference has no value."""
        if self.error is not None:
            raise copy_error(self.error)
