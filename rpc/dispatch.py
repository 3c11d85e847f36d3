"""Calls under way: who waits for which answer, and until when."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..core.futures import Future
from .messages import Method, Outgoing
from .timers import Timer, Timers
from .wire.header import Kind

MOST_QUEUES = 16  # of time-outs that have no call under way: those that are computed may never be used again


class PendingCall(Outgoing):
    """Request that was sent and not answered, or another wait (``to`` is -1).

    The one who takes it out of the table completes its future, once.
    """

    __slots__ = ("began", "future")

    began: float
    future: Future[Any]

    def done(self) -> bool:
        return self.future.done()


class DeadlineQueue(dict[int, PendingCall]):
    """Calls of one time-out, in the order of their deadlines, and the timer of the first (or of one that was answered)."""

    __slots__ = ("timer",)

    timer: Timer


class CallTable:
    """Calls under way of one agent.

    Calls of one time-out expire in the order in which they were made, so they need one timer together, and an answered call
    leaves at once.

    Args:
        timers: where the deadlines are kept.
        expired: called with a call whose deadline has passed, when it was taken out.

    Attributes:
        calls: by id; to be looked at only.
    """

    def __init__(self, timers: Timers, expired: Callable[[PendingCall], object]) -> None:
        self._timers = timers
        self._expired = expired
        # Re-entrant: a signal handler or a finalizer may close the agent, or call, while its thread is in here.
        self._lock = threading.RLock()
        # Ids begin anywhere: an answer to another incarnation of this worker must not match.
        self._ids = itertools.count(random.getrandbits(48))
        self.calls: dict[int, PendingCall] = {}
        self._queues: dict[float, DeadlineQueue] = {}  # by time-out
        self.sent = 0  # requests so far
        self._long = 0.0
        self._is_long: Callable[[PendingCall], object] | None = None
        self._told: set[int] = set()  # long calls that were told of
        self._looking = True  # a timer is set, or nobody wants to hear of long calls

    def __len__(self) -> int:
        return len(self.calls)

    def new_call(self, method: int, timeout: float, to: int, what: object) -> PendingCall:
        """Return a call that is not in the table yet, with an id that none has had.

        Args:
            method: which handler answers.
            timeout: seconds from now; 0 for none.
            to: rank of the callee; -1 for a wait that no single worker can end.
            what: its text names the call in errors; it is made only for them.
        """
        now = self._timers.now()
        call = PendingCall(Kind.REQUEST, method, next(self._ids), timeout, to, now + timeout if timeout else 0.0)
        call.began, call.what, call.future = now, what, Future()
        return call

    def add(self, call: PendingCall) -> None:
        """Add a call that is about to be sent."""
        with self._lock:
            self.calls[call.call_id] = call
            self.sent += call.to >= 0
            if call.timeout:
                self._enqueue(call)
            if not self._looking:
                self._look_later()

    def expire_in(self, call: PendingCall, seconds: float) -> None:
        """Give a call without a time-out one that begins now, unless it was answered; giving it again changes nothing."""
        with self._lock:
            if call.call_id in self.calls and not call.timeout:
                call.timeout, call.deadline = seconds, self._timers.now() + seconds
                self._enqueue(call)

    def _enqueue(self, call: PendingCall) -> None:
        # lock held
        queue = self._queues.get(call.timeout)
        if queue is None:
            queue = DeadlineQueue()
            queue.timer = self._timers.call_at(call.deadline, self._expire, queue, call.timeout)
            self._queues[call.timeout] = queue  # last: a queue that was interrupted before it had a timer is none
        queue[call.call_id] = call

    def take(self, call_id: int) -> PendingCall | None:
        """Remove a call; ``None`` if somebody else did."""
        call = queue = None
        taken = False
        try:
            with self._lock:
                call = self.calls.get(call_id)
                if call is None:
                    return None
                queue = self._queues.get(call.timeout)
                del self.calls[call_id]
                taken = True
                if queue is not None and call_id in queue:  # it is not there if a signal's handler interrupted ``add``
                    del queue[call_id]
                    if not queue and len(self._queues) > MOST_QUEUES:
                        self._queues.pop(call.timeout).timer.cancel()
        except BaseException:  # Ctrl-C, say: nobody has taken it
            if taken and call is not None:
                self.calls[call_id] = call
                if call.timeout:
                    self._enqueue(call)
            raise
        return call

    def take_if(self, condition: Callable[[PendingCall], bool]) -> Iterator[PendingCall]:
        """Remove and yield the calls that fulfil a condition."""
        for call in self._listed():
            if condition(call) and self.take(call.call_id):
                yield call

    def open(self) -> int:
        """Return how many calls somebody waits for: those for later items of a stream are not counted."""
        return sum(call.method != Method.PULL for call in self._listed())

    def watch(self, seconds: float, is_long: Callable[[PendingCall], object]) -> None:
        """Call ``is_long(call)`` once for each call that waits for longer than ``seconds``, at most twice as long."""
        self._long, self._is_long = seconds, is_long
        self._looking = False

    def _look_later(self) -> None:
        # lock held. A timer as long as there are calls: one for each call would cost every call.
        self._timers.call_later(self._long / 2, self._look)
        self._looking = True

    def _look(self) -> None:
        with self._lock:
            self._looking = False
            if self.calls:
                self._look_later()
        long = self.older_than(self._long)
        fresh = [call for call in long if call.call_id not in self._told]
        self._told = {call.call_id for call in long}
        for call in fresh:
            if self._is_long is not None:
                self._is_long(call)

    def age(self, call: PendingCall) -> float:
        """Return the seconds since a call was made."""
        return self._timers.now() - call.began

    def older_than(self, seconds: float) -> list[PendingCall]:
        """Return the calls under way that are older than ``seconds``, the oldest first; not those for items of a stream."""
        calls = [call for call in self._listed() if self.age(call) > seconds and call.method != Method.PULL]
        return sorted(calls, key=self.age, reverse=True)

    def descriptions(self) -> list[str]:
        """Return a text for each call under way, for people."""
        return [str(call.what) for call in self._listed()]

    def _listed(self) -> list[PendingCall]:
        with self._lock:
            return list(self.calls.values())

    def _expire(self, queue: DeadlineQueue, timeout: float) -> None:
        now, due = self._timers.now(), []
        with self._lock:
            if self._queues.get(timeout) is not queue:
                return  # it was empty, and removed this instant
            for call in list(itertools.takewhile(lambda call: call.deadline <= now, queue.values())):
                del queue[call.call_id]
                if self.calls.pop(call.call_id, None) is not None:
                    due.append(call)
            if queue:
                queue.timer = self._timers.call_at(next(iter(queue.values())).deadline, self._expire, queue, timeout)
            else:
                del self._queues[timeout]
        for call in due:
            self._expired(call)
