"""Repeated calls of a function on an event loop, in growing intervals, until it returns False."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

TICK_SECONDS = 1e-3


class Ticker:
    """Calls ``action`` on the loop's thread from ``start`` on, until it returns False.

    Each call wakes the loop's thread. In a process that computes, this takes as long as a small remote call.

    Args:
        loop: the event loop.
        action: returns whether to call it again.
        longest: most seconds between two calls. The first call comes after a millisecond, and then the interval doubles.

    Attributes:
        ticking: it was started and has not ended; ``start`` does nothing then.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, action: Callable[[], bool], longest: float = TICK_SECONDS
    ) -> None:
        self._loop = loop
        self._action = action
        self._longest = longest
        self.ticking = False
        # An empty context: the loop must not keep objects to which a caller's context variables refer.
        self._context = contextvars.Context()

    def start(self) -> bool:
        """Let the action be called within two milliseconds; return False if the loop is closed. Any thread."""
        if not self.ticking:
            self.ticking = True
            try:
                self._loop.call_soon_threadsafe(self._later, context=self._context)
            except RuntimeError:
                return False
            except BaseException:  # such as Ctrl-C: the next caller starts it
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
        if self._action():  # another thread called ``start`` just before, when it was still ticking
            self.start()
