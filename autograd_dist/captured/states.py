"""States of captured steps, without messages: the form of a step, and the parts and replays that one worker knows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Generic, TypeVar

from ...base.errors import IllegalEventError

PARTS_KEPT = 64  # of one caller, the least recently used are dropped
REPLAYS_KEPT = 16  # of one caller that wait for their gradients, the oldest are dropped

P = TypeVar("P")


class StepPlace(Enum):
    """Place that a step has reached."""

    OUTSIDE = auto()
    JOINED = auto()  # in the context of its caller: the step is a function that another worker calls
    INSIDE = auto()  # in its context
    CALLED = auto()  # another worker
    DIFFERENTIATED = auto()
    STEPPED = auto()
    LEFT = auto()


class StepMove(Enum):
    """Next thing that a step does."""

    PLAIN = auto()  # a call outside of the context
    ENTER = auto()
    CALL = auto()
    TAKE = auto()  # the result of a call
    BACKWARD = auto()
    STEP = auto()
    LEAVE = auto()
    RETURN = auto()


NEXT = {
    (StepPlace.OUTSIDE, StepMove.PLAIN): StepPlace.OUTSIDE,
    (StepPlace.LEFT, StepMove.PLAIN): StepPlace.LEFT,
    (StepPlace.OUTSIDE, StepMove.RETURN): StepPlace.OUTSIDE,
    (StepPlace.LEFT, StepMove.RETURN): StepPlace.LEFT,
    (StepPlace.JOINED, StepMove.CALL): StepPlace.JOINED,
    (StepPlace.JOINED, StepMove.TAKE): StepPlace.JOINED,
    (StepPlace.JOINED, StepMove.RETURN): StepPlace.JOINED,
    (StepPlace.OUTSIDE, StepMove.ENTER): StepPlace.INSIDE,
    (StepPlace.INSIDE, StepMove.CALL): StepPlace.CALLED,
    (StepPlace.CALLED, StepMove.CALL): StepPlace.CALLED,
    (StepPlace.CALLED, StepMove.TAKE): StepPlace.CALLED,
    (StepPlace.CALLED, StepMove.BACKWARD): StepPlace.DIFFERENTIATED,
    (StepPlace.DIFFERENTIATED, StepMove.STEP): StepPlace.STEPPED,
    (StepPlace.STEPPED, StepMove.LEAVE): StepPlace.LEFT,
}
REASONS = {
    StepMove.PLAIN: "it calls other workers after autograd_dist.backward(), in the autograd context",
    StepMove.ENTER: "it enters more than one autograd context",
    StepMove.CALL: "it calls other workers after autograd_dist.backward(), in the autograd context",
    StepMove.TAKE: "it waits for the result of a call of another worker after autograd_dist.backward()",
    StepMove.BACKWARD: "it runs autograd_dist.backward() more than once, or before it has called another worker",
    StepMove.STEP: "it runs DistributedOptimizer.step() more than once, or before backward()",
    StepMove.LEAVE: "its autograd context ends without backward() and DistributedOptimizer.step()",
    StepMove.RETURN: "its autograd context was left by an exception, or is not left",
}
"""Reasons: a step that does this at another place is not recorded."""
IN_JOINED = (
    "it enters a context, or runs backward() or DistributedOptimizer.step(), in the autograd context of its caller"
)
NOT_TAKEN = "it does not wait for the result of a call of another worker before autograd_dist.backward()"
NOT_RETURNED = "it does not wait for the result of a call of another worker before it returns"


class StepForm:
    """The form of a step: where it is, and which calls of other workers are under way.

    Args:
        joined: whether it is a function that another worker calls in its autograd context.

    Attributes:
        place: where it is.
        alone: the call before which all others were taken, if no other has begun since; else ``None``. Only its function may
            change something, because all others can be refused after it has run.
    """

    def __init__(self, joined: bool = False) -> None:
        self.place = StepPlace.JOINED if joined else StepPlace.OUTSIDE
        self.alone: int | None = None
        self._calls = 0
        self._open: set[int] = set()

    def move(self, move: StepMove, call: int | None = None) -> None:
        """Note what the step does.

        Args:
            move: what it does.
            call: the number of the call that is taken.

        Raises:
            IllegalEventError: steps of this form are not recorded; its text is the reason.
        """
        if (found := NEXT.get((self.place, move))) is None:
            raise IllegalEventError(IN_JOINED if self.place is StepPlace.JOINED else REASONS[move])
        if self._open and move in (StepMove.BACKWARD, StepMove.RETURN):
            raise IllegalEventError(NOT_TAKEN if move is StepMove.BACKWARD else NOT_RETURNED)
        self.place = found
        if move is StepMove.CALL:
            self.alone = None if self._open else self._calls
            self._open.add(self._calls)
            self._calls += 1
        elif move is StepMove.TAKE and call is not None:
            self._open.discard(call)


class CallPlace(Enum):
    """Place that a call of a replay has reached at its callee."""

    RETURNED = auto()
    RUNNING = auto()  # its backward, which may wait for other workers
    DONE = auto()


class ReplayForm:
    """Places of the calls of one replay at one worker. They may come from several callers, and their backwards in any order."""

    def __init__(self) -> None:
        self._places: dict[Any, CallPlace] = {}

    def returned(self, call: Any) -> None:
        """Note that a call has returned its results."""
        self._places[call] = CallPlace.RETURNED

    def begin(self, calls: Sequence[Any]) -> None:
        """Note that the gradients of some calls have come.

        Raises:
            IllegalEventError: one of them is not known, or its gradients came before.
        """
        if len(set(calls)) < len(calls) or any(self._places.get(each) is not CallPlace.RETURNED for each in calls):
            raise IllegalEventError(
                "gradients of a captured step came twice, or for a call that this worker does not know"
            )
        self._places.update(dict.fromkeys(calls, CallPlace.RUNNING))

    def end(self, calls: Sequence[Any]) -> bool:
        """Note that the backwards of some calls have run; return whether those of all calls have: then a worker steps."""
        self._places.update(dict.fromkeys(calls, CallPlace.DONE))
        return all(place is CallPlace.DONE for place in self._places.values())


class PartTable(Generic[P]):
    """Parts of steps that one worker knows, and what it keeps of replays until their gradients come.

    A caller names both by numbers of its own. Callers are incarnations of workers, so a number of one that was restarted means
    nothing.
    """

    def __init__(self) -> None:
        self._parts: dict[Any, OrderedDict[int, P]] = {}
        self._replays: dict[Any, OrderedDict[int, Any]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def learn(self, caller: Any, number: int, part: P) -> list[P]:
        """Note a part; return those that are dropped.

        Args:
            caller: the caller.
            number: its number of the part.
            part: the part.
        """
        known = self._parts.setdefault(caller, OrderedDict())
        known[number] = part
        return [known.popitem(last=False)[1] for _ in range(len(known) - PARTS_KEPT)]

    def find(self, caller: Any, number: int) -> P | None:
        """Return a part; ``None`` if it is not known here, or was dropped.

        Args:
            caller: the caller.
            number: its number of the part.
        """
        known = self._parts.get(caller)
        if known is None or number not in known:
            return None
        known.move_to_end(number)
        return known[number]

    def forget(self, caller: Any, number: int) -> P | None:
        """Remove a part that its caller will not name again, and return it.

        Args:
            caller: the caller.
            number: its number of the part.
        """
        known = self._parts.get(caller, OrderedDict())
        part = known.pop(number, None)
        if not known:
            self._parts.pop(caller, None)
        return part

    def keep(self, caller: Any, replay: int, oldest: int, kept: Any) -> list[Any]:
        """Keep something of a replay; return what is dropped.

        Args:
            caller: the caller.
            replay: number of the replay.
            oldest: the caller's oldest replay that is not over.
            kept: what to keep.
        """
        known = self._replays.setdefault(caller, OrderedDict())
        over = [each for each in known if each < oldest]
        dropped = [known.pop(each) for each in over]
        known[replay] = kept
        return dropped + [known.popitem(last=False)[1] for _ in range(len(known) - REPLAYS_KEPT)]

    def kept(self, caller: Any, replay: int) -> Any:
        """Return what is kept of a replay; ``None`` if nothing is.

        Args:
            caller: the caller.
            replay: its number of the replay.
        """
        known = self._replays.get(caller)
        return None if known is None else known.get(replay)

    def take(self, caller: Any, replay: int) -> Any:
        """Remove and return what is kept of a replay; ``None`` if nothing is.

        Args:
            caller: the caller.
            replay: its number of the replay.
        """
        return self._replays.get(caller, OrderedDict()).pop(replay, None)

    def lost(self, caller: Any) -> list[Any]:
        """Forget a caller that is lost; return what is dropped."""
        empty: OrderedDict[int, Any] = OrderedDict()
        return [*self._parts.pop(caller, empty).values(), *self._replays.pop(caller, empty).values()]

    def clear(self) -> list[Any]:
        """Forget all; return what is dropped."""
        callers = {*self._parts, *self._replays}
        return [each for caller in callers for each in self.lost(caller)]
