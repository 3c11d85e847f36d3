"""Log of one process: its series by name, and sinks that get every value.

Any thread may log, also a signal handler or a finalizer that interrupted another call of ``log`` in its own thread. So no
call waits for a lock: a value is appended to a queue, and the thread that gets the lock moves what is queued to the series.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable

from .series import Point, Series

MOST_NAMES = 1000
MOST_QUEUED = 100_000  # while one thread moves values; beyond, the oldest are lost

Sink = Callable[[str, Point], None]


class ProgramLog:
    """Series of one process by name, and the sinks that get every value.

    Attributes:
        dropped: how many values were dropped because of their new names.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._series: dict[str, Series] = {}
        self._queue: deque[tuple[str, int | None, float, float]] = deque(maxlen=MOST_QUEUED)
        self._moving = threading.Lock()
        self._sinks: tuple[Sink, ...] = ()

    def add(self, values: dict[str, float], step: int | None) -> None:
        """Add a value to each series that is named.

        Args:
            values: finite or not, by name.
            step: their place in the program's course; None counts the values of each name.
        """
        now = time.time()
        for name, value in values.items():
            self._queue.append((name, step, value, now))
        while self._queue and self._moving.acquire(blocking=False):
            try:
                self._move()
            finally:
                self._moving.release()

    def _move(self) -> None:
        while self._queue:
            name, step, value, now = self._queue.popleft()
            series = self._series.get(name) or self._new(name)
            if series is None:
                continue
            point = Point(series.count if step is None else step, value, now)
            series.add(point)
            for sink in self._sinks:
                sink(name, point)

    def _new(self, name: str) -> Series | None:
        if len(self._series) >= MOST_NAMES:
            self.dropped += 1
            return None
        return self._series.setdefault(name, Series())

    def knows(self, name: str) -> bool:
        """Return whether there are values of a name."""
        return name in self._series

    def has_room(self) -> bool:
        """Return whether values of a new name are kept."""
        return len(self._series) < MOST_NAMES

    def series(self) -> dict[str, Series]:
        """Return the series by name, in the order of their first values. They may still change."""
        return dict(self._series)

    def add_sink(self, sink: Sink) -> None:
        """Call ``sink(name, point)`` for each value from now on. It must not raise, and must return soon."""
        self._sinks = (*self._sinks, sink)

    def remove_sink(self, sink: Sink) -> None:
        """Call a sink no longer."""
        self._sinks = tuple(each for each in self._sinks if each != sink)

    def forked(self) -> None:
        """In a forked child: take a new lock, because a thread that the child does not have may hold the old one."""
        self._moving = threading.Lock()


_log = ProgramLog()
os.register_at_fork(after_in_child=lambda: _log.forked())


def program_log() -> ProgramLog:
    """Return the log of this process."""
    return _log
