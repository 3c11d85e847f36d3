"""Calls under way: who waits for which answer, and until when."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from ..core.futures import Future
from .flow import Departure
from .messages import Outgoing


class PendingCall(Departure):
    """Something awaited: a request that was sent and not answered, say. Whoever takes it out of the table completes its
    future, once."""

    __slots__ = ("future", "id", "message", "seconds", "to")

    def __init__(self, call_id: int, to: int, seconds: float, deadline: float, what: object) -> None:
        # The fields of a ``Departure`` are set here: each call would pay for the two frames of ``super().__init__``.
        self.place = None
        self.connection = None
        self.deadline = deadline
        self.size = 0
        self.id = call_id
        self.to = to  # rank, or -1 for a wait that no single worker can end
        self.seconds = seconds
        self.what = what
        self.future: Future[Any] = Future()
        self.message: Outgoing | None = None

    def over(self) -> bool:
        return self.future.done()


class CallTable:
    """The calls under way of one agent. Every operation is a few atomic dictionary steps, so it needs no lock.

    Calls of one time-out expire in the order in which they were made: one insertion-ordered dictionary for each time-out
    is a timer queue from which an answered call leaves at once.
    """

    def __init__(self) -> None:
        # Ids begin anywhere: an answer to another life of this worker must not match.
        self._ids = itertools.count(random.getrandbits(48))
        self._calls: dict[int, PendingCall] = {}
        self._queues: dict[float, dict[int, PendingCall]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def new_id(self) -> int:
        """An id that no call of this table has had."""
        return next(self._ids)

    def add(self, call: PendingCall) -> None:
        """A call is about to be sent."""
        self._calls[call.id] = call
        if call.seconds > 0:
            self._enqueue(call)

    def _enqueue(self, call: PendingCall) -> None:
        while True:
            queue = self._queues.setdefault(call.seconds, {})
            queue[call.id] = call
            if self._queues.get(call.seconds) is queue:
                return  # else it was tidied away between the two steps

    def take(self, call_id: int) -> PendingCall | None:
        """Remove a call; ``None`` if somebody else did."""
        call = self._calls.pop(call_id, None)
        if call is not None and (queue := self._queues.get(call.seconds)) is not None:
            queue.pop(call_id, None)
        return call

    def take_if(self, condition: Callable[[PendingCall], bool]) -> Iterator[PendingCall]:
        """Remove and yield the calls that fulfil a condition."""
        for call in list(self._calls.values()):
            if condition(call) and self.take(call.id):
                yield call

    def expired(self, now: float) -> Iterator[PendingCall]:
        """Remove and yield the calls whose deadline has passed."""
        for seconds, queue in list(self._queues.items()):
            if not queue:
                self._tidy(seconds)
            while (first := _first(queue)) is not None and first.deadline <= now:
                queue.pop(first.id, None)
                if self.take(first.id):
                    yield first

    def _tidy(self, seconds: float) -> None:
        # A time-out that is computed, from a deadline say, may never be used again.
        for call in list(self._queues.pop(seconds, {}).values()):
            self._enqueue(call)  # it came in this very moment

    def next_deadline(self) -> float | None:
        """The earliest deadline of a call under way."""
        heads = [first.deadline for queue in list(self._queues.values()) if (first := _first(queue)) is not None]
        return min(heads, default=None)

    def descriptions(self) -> list[str]:
        """What is under way, for people."""
        return [str(call.what) for call in list(self._calls.values())]


def _first(queue: dict[int, PendingCall]) -> PendingCall | None:
    while True:
        try:
            return next(iter(queue.values()), None)
        except RuntimeError:
            continue  # another thread added or removed one between the two steps
