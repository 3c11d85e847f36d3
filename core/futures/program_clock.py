"""``ProgramClock``: clock of the time-outs of programs. It stands still while a debugger holds a worker of the job.

The time-outs of calls and of ``Future.wait`` are counted on it. What tells that a worker lives is not: heartbeats, redials and
verdicts go on while a thread is held.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

LOOK_SECONDS = 0.5  # a wait whose time-out would have come looks so often, while the clock stands, whether it goes on


class ProgramClock:
    """Clock that can be stopped.

    Args:
        clock: the seconds of a clock that always goes.

    Attributes:
        now: returns the seconds of this clock. It is ``clock`` itself until the clock is stopped for the first time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._holders = 0
        self._stopped_at = 0.0
        self._lost = 0.0  # seconds for which it has stood still
        self.now = clock

    def stop(self) -> None:
        """Let it stand still until ``go`` is called as often as this."""
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._stopped_at = stopped = self._clock() - self._lost
                self.now = lambda: stopped

    def go(self) -> None:
        """Let it go on, unless another ``stop`` still holds it."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._go_on()

    def forked(self) -> None:
        """In a forked child: go on, and take a new lock. What holds the parent's clock never calls ``go`` here."""
        self._lock = threading.Lock()
        if self._holders:
            self._holders = 0
            self._go_on()

    def _go_on(self) -> None:
        # lock held
        self._lost = lost = self._clock() - self._stopped_at
        clock = self._clock
        self.now = lambda: clock() - lost

    def real(self, when: float) -> float:
        """Return the time of the clock that always goes at which this one shows ``when``, as far as it is known.

        While this clock stands still, that is a moment at which to look again.
        """
        if self._holders:
            return self._clock() + max(when - self._stopped_at, LOOK_SECONDS)
        return when + self._lost


program_clock = ProgramClock()  # of this process
os.register_at_fork(after_in_child=program_clock.forked)
