"""Calls of a function on an event loop, more and more rarely, for as long as there is something to do."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

TICK_SECONDS = 1e-3


class Ticker:
    """Calls ``action`` on the loop's thread from ``start`` on, until it returns False.

    Each call wakes the loop's thread, which in a process that computes costs as much as a small remote call.

    Args:
        loop: the event loop.
        action: returns whether to call it again.
        longest: seconds between two calls, at most. The first comes after a millisecond, and then each time doubles.

    Attributes:
        ticking: it was started and has not ended; ``start`` would do nothing.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, action: Callable[[], bool], longest: float = TICK_SECONDS
    ) -> None:
        self._loop = loop
        self._action = action
        self._longest = longest
        self.ticking = False
        # An empty one: the loop must not keep what the variables of a caller's context refer to.
        self._context = contextvars.Context()

    def start(self) -> bool:
        """Have the action called within two milliseconds; return False if the loop is closed. Any thread."""
        if not self.ticking:
            self.ticking = True
            try:
                self._loop.call_soon_threadsafe(self._later, context=self._context)
            except RuntimeError:
                return False
            except BaseException:  # Ctrl-C, say: whoever comes next starts it
                self.ticking = False
                raise
        return True

    def _later(self, seconds: float = TICK_SECONDS) -> None:
        self._loop.call_later(seconds, self._tick, min(2 * seconds, self._longest), context=self._context)

    def _tick(self, next_seconds: float) -> None:
        if self._action():
            self._later(next_seconds)
            return
        self.ticking = False
        if self._action():  # somebody came just before, and did not start it
            self.start()
