"""Promise at the callee of a request that waits for a value: its states, and the table of their transitions.

``PROMISE_TRANSITIONS`` is the whole behaviour of a promise. ``PROTOCOL.md`` has the same table, and a test compares the two.
"""

from __future__ import annotations

from enum import Enum

from ..base.errors import IllegalEventError


class PromiseState(Enum):
    """State of a promise at the worker that needs its value."""

    NEW = "new"  # the request has arrived
    ASKING_CALLEE = "asking callee"  # the callee of the call that makes the value is asked for its result
    ASKING_OWNER = "asking owner"  # the owner of the reference is asked for its value
    KEPT = "kept"  # the value is there
    BROKEN = "broken"  # there will be no value, and the request fails with the reason
    OVER = "over"  # the request was cancelled

    __hash__ = object.__hash__  # that of enumerations is written in Python


class PromiseEvent(Enum):
    """Event that changes the state of a promise."""

    BEGIN = "begin"  # the request is accepted
    BEGIN_CALL = "begin call"  # the same, and the value is the result of a call that its caller has sent
    VALUE = "value"  # an answer with the value has come
    ERROR = "error"  # an answer has come that says why there is none, or the worker that is asked is lost
    UNKNOWN = "unknown"  # the callee has answered the call before, does not know it, or is lost
    CANCEL = "cancel"  # the value is not needed any more

    __hash__ = object.__hash__


class PromiseAction(Enum):
    """Instruction that a transition gives."""

    ASK_CALLEE = "ask callee"
    ASK_OWNER = "ask owner"
    KEEP = "keep"  # the request may use the value
    BREAK = "break"  # the request fails with the reason
    WITHDRAW = "withdraw"  # the question that is under way is cancelled


PROMISE_TRANSITIONS: dict[tuple[PromiseState, PromiseEvent], tuple[PromiseState, tuple[PromiseAction, ...]]] = {
    (PromiseState.NEW, PromiseEvent.BEGIN): (PromiseState.ASKING_OWNER, (PromiseAction.ASK_OWNER,)),
    (PromiseState.NEW, PromiseEvent.BEGIN_CALL): (PromiseState.ASKING_CALLEE, (PromiseAction.ASK_CALLEE,)),
    (PromiseState.NEW, PromiseEvent.CANCEL): (PromiseState.OVER, (PromiseAction.BREAK,)),
    (PromiseState.ASKING_CALLEE, PromiseEvent.VALUE): (PromiseState.KEPT, (PromiseAction.KEEP,)),
    (PromiseState.ASKING_CALLEE, PromiseEvent.ERROR): (PromiseState.BROKEN, (PromiseAction.BREAK,)),
    (PromiseState.ASKING_CALLEE, PromiseEvent.UNKNOWN): (PromiseState.ASKING_OWNER, (PromiseAction.ASK_OWNER,)),
    (PromiseState.ASKING_CALLEE, PromiseEvent.CANCEL): (
        PromiseState.OVER,
        (PromiseAction.WITHDRAW, PromiseAction.BREAK),
    ),
    (PromiseState.ASKING_OWNER, PromiseEvent.VALUE): (PromiseState.KEPT, (PromiseAction.KEEP,)),
    (PromiseState.ASKING_OWNER, PromiseEvent.ERROR): (PromiseState.BROKEN, (PromiseAction.BREAK,)),
    (PromiseState.ASKING_OWNER, PromiseEvent.CANCEL): (
        PromiseState.OVER,
        (PromiseAction.WITHDRAW, PromiseAction.BREAK),
    ),
    (PromiseState.KEPT, PromiseEvent.CANCEL): (PromiseState.KEPT, ()),
    (PromiseState.BROKEN, PromiseEvent.CANCEL): (PromiseState.BROKEN, ()),
    (PromiseState.OVER, PromiseEvent.BEGIN): (PromiseState.OVER, ()),
    (PromiseState.OVER, PromiseEvent.BEGIN_CALL): (PromiseState.OVER, ()),
    (PromiseState.OVER, PromiseEvent.UNKNOWN): (PromiseState.OVER, ()),
    (PromiseState.OVER, PromiseEvent.VALUE): (PromiseState.OVER, ()),
    (PromiseState.OVER, PromiseEvent.ERROR): (PromiseState.OVER, ()),
    (PromiseState.OVER, PromiseEvent.CANCEL): (PromiseState.OVER, ()),
}


class PromiseMachine:
    """Promise without sockets and threads: its driver gives it one event at a time, and carries its instructions out."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = PromiseState.NEW

    def handle(self, event: PromiseEvent) -> tuple[PromiseAction, ...]:
        """Change the state, and return the instructions that follow.

        Raises:
            IllegalEventError: the event cannot happen in this state.
        """
        transition = PROMISE_TRANSITIONS.get((self.state, event))
        if transition is None:
            raise IllegalEventError(
                f"a promise is {self.state.value}, which does not allow the event {event.value!r}; report this"
            )
        self.state, actions = transition
        return actions
