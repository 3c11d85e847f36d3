"""Calls of a function on an event loop every millisecond, for as long as there is something to do."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

TICK_SECONDS = 1e-3


class Ticker:
    """Calls ``action`` on the loop's thread every millisecond from ``start`` on, until it returns False.

    Args:
        loop: the event loop.
        action: returns whether to call it again.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, action: Callable[[], bool]) -> None:
        self._loop = loop
        self._action = action
        self._ticking = False
        # An empty one: the loop must not keep what the variables of a caller's context refer to.
        self._context = contextvars.Context()

    def start(self) -> bool:
        """Have the action called within two milliseconds; return False if the loop is closed. Any thread."""
        if not self._ticking:
            self._ticking = True
            try:
                self._loop.call_soon_threadsafe(self._later, context=self._context)
            except RuntimeError:
                return False
            except BaseException:  # Ctrl-C, say: whoever comes next starts it
                self._ticking = False
                raise
        return True

    def _later(self) -> None:
        self._loop.call_later(TICK_SECONDS, self._tick, context=self._context)

    def _tick(self) -> None:
        if self._action():
            self._later()
            return
        self._ticking = False
        if self._action():  # somebody came just before, and did not start it
            self.start()
