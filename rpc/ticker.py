"""Time for an agent: one thread that calls ``tick`` when something is due.

The agent itself never waits for time. A simulator leaves this thread out and calls ``tick`` with a clock of its own.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias

logger = logging.getLogger("telegrad.rpc")
Note: TypeAlias = Callable[[], None] | float  # an action to run, or the time of the next tick


class Timers:
    """Actions to run at given times."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def add(self, when: float, action: Callable[[], None]) -> float:
        """Run ``action`` at ``when``; returns ``when``."""
        with self._lock:
            heapq.heappush(self._heap, (when, next(self._numbers), action))
        return when

    def run(self, now: float) -> float | None:
        """Run what is due; returns when the next one is."""
        while True:
            with self._lock:
                if not self._heap or self._heap[0][0] > now:
                    return self._heap[0][0] if self._heap else None
                action = heapq.heappop(self._heap)[2]
            action()


class Waker(Protocol):
    """Calls an agent's ``tick`` in time; a simulator brings one without a thread."""

    def wake_by(self, when: float) -> None:
        """``tick`` must run at ``when``, or earlier."""
        ...

    def stop(self) -> None:
        """Call it no more."""
        ...


class Ticker:
    """Calls ``tick() -> when`` at the times that it returns, or earlier if told so, and runs the actions in ``inbox``.

    It waits for both in one place, a ``SimpleQueue``: putting something into that is all that a finalizer may do.
    """

    def __init__(
        self, tick: Callable[[], float], inbox: SimpleQueue[Note], now: Callable[[], float], name: str
    ) -> None:
        self._tick = tick
        self._inbox = inbox
        self._now = now
        self._wake_at = 0.0
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake_by(self, when: float) -> None:
        """Something is due at ``when``; costs nothing if the thread wakes by then anyway."""
        if when < self._wake_at:
            self._inbox.put(when)

    def stop(self) -> None:
        """End the thread."""
        self._stopped = True
        self._inbox.put(0.0)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped:
            # Anything that becomes due while `tick` runs sees this and is found in the inbox.
            self._wake_at = float("inf")
            try:
                due = self._tick()
            except Exception:
                logger.exception("a periodic task of an agent failed")
                due = self._now() + 1.0
            self._wake_at = due
            while not self._stopped and (pause := self._wake_at - self._now()) > 0:
                self._wait(min(pause, 60.0))

    def _wait(self, seconds: float) -> None:
        try:
            note = self._inbox.get(timeout=seconds)
        except Empty:
            return
        if not callable(note):
            self._wake_at = min(self._wake_at, note)
            return
        try:
            note()
        except Exception:
            logger.exception("an action of an agent failed")
