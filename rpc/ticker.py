"""Time for an agent: one thread that calls ``tick`` when something is due.

The agent itself never waits for time. A simulator leaves this thread out and calls ``tick`` with a clock of its own.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Protocol

logger = logging.getLogger("telegrad.rpc")


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
    """Calls ``tick() -> when`` at the times that it returns, or earlier if told so."""

    def __init__(self, tick: Callable[[], float], now: Callable[[], float], name: str) -> None:
        self._tick = tick
        self._now = now
        self._condition = threading.Condition()
        self._wake_at = 0.0
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake_by(self, when: float) -> None:
        """Something is due at ``when``; costs nothing if the thread wakes by then anyway."""
        if when < self._wake_at:
            with self._condition:
                self._wake_at = min(self._wake_at, when)
                self._condition.notify()

    def stop(self) -> None:
        """End the thread."""
        with self._condition:
            self._stopped = True
            self._condition.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped:
            # Anything that becomes due while `tick` runs sees this and wakes us again.
            self._wake_at = float("inf")
            try:
                due = self._tick()
            except Exception:
                logger.exception("a periodic task of an agent failed")
                due = self._now() + 1.0
            with self._condition:
                self._wake_at = min(self._wake_at, due)
                while not self._stopped and (pause := self._wake_at - self._now()) > 0:
                    self._condition.wait(min(pause, 60.0))
