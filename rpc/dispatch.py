"""Calls under way: who waits for which answer, and until when."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..core.futures import Future
from .flow import Departure
from .messages import Outgoing
from .timers import Timer, Timers


class PendingCall(Departure):
    """Something awaited: a request that was sent and not answered, say. Whoever takes it out of the table completes its
    future, once."""

    __slots__ = ("future", "id", "message", "seconds", "timer", "to")

    def __init__(self, call_id: int, to: int, seconds: float, deadline: float, what: object) -> None:
        # The fields of a ``Departure`` are set here: each call would pay for the two frames of ``super().__init__``.
        self.place = None
        self.connection = None
        self.timer: Timer | None = None
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
    """The calls under way of one agent, each with a timer for its deadline.

    Args:
        timers: where the deadlines are kept.
        expired: called with a call whose deadline has passed, when it was taken out.
    """

    def __init__(self, timers: Timers, expired: Callable[[PendingCall], object]) -> None:
        self._timers = timers
        self._expired = expired
        # Re-entrant: a signal handler or a finalizer may close the agent, or call, while its thread is in here.
        self._lock = threading.RLock()
        # Ids begin anywhere: an answer to another incarnation of this worker must not match.
        self._latest_id = random.getrandbits(48)
        self._calls: dict[int, PendingCall] = {}
        self.sent = 0  # requests so far

    def __len__(self) -> int:
        return len(self._calls)

    def new_id(self) -> int:
        """Return an id that no call of this table has had."""
        with self._lock:
            self._latest_id += 1
            return self._latest_id

    def add(self, call: PendingCall) -> None:
        """Add a call that is about to be sent."""
        with self._lock:
            self._calls[call.id] = call
            self.sent += call.to >= 0
            if call.seconds > 0:
                call.timer = self._timers.call_at(call.deadline, self._expire, call)

    def take(self, call_id: int) -> PendingCall | None:
        """Remove a call; ``None`` if somebody else did."""
        with self._lock:
            call = self._calls.pop(call_id, None)
        if call is not None and call.timer is not None:
            call.timer.cancel()
        return call

    def take_if(self, condition: Callable[[PendingCall], bool]) -> Iterator[PendingCall]:
        """Remove and yield the calls that fulfil a condition."""
        for call in self._listed():
            if condition(call) and self.take(call.id):
                yield call

    def descriptions(self) -> list[str]:
        """Return a text for each call under way, for people."""
        return [str(call.what) for call in self._listed()]

    def _listed(self) -> list[PendingCall]:
        with self._lock:
            return list(self._calls.values())

    def _expire(self, call: PendingCall) -> None:
        if self.take(call.id):
            self._expired(call)
