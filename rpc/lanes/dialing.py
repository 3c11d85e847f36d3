"""Limit of the dials of a lane at a time. It is needed when a worker dies: then all others dial one another at once.

A dial holds a place. If it takes long, it goes on without its place, because its peer may take a minute to answer, and the
other dials must not wait for that. But if all dials take long, the machine is busy. More dials at a time would then take even
longer, until no handshake ends in time. So the time for which a dial may hold a place follows from the dials that succeeded.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

MOST_DIALING = 4
PLACE_SECONDS = 0.5  # at the beginning
LONGEST_SECONDS = 5.0


class DialingPlaces:
    """Places for dials: at most ``most`` go on at a time, beside those that have taken too long.

    Args:
        most: number of places.
        seconds: how long a dial may hold a place at the beginning; it never becomes less.
        longest: the most that this time can become.

    Attributes:
        seconds: how long a dial may hold a place now: twice the time of the last dial, within these limits.
    """

    def __init__(
        self, most: int = MOST_DIALING, seconds: float = PLACE_SECONDS, longest: float = LONGEST_SECONDS
    ) -> None:
        self.seconds = self._least = seconds
        self._longest = max(seconds, longest)
        self._free = asyncio.Semaphore(most)

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it inside the block. On the loop."""
        await self._free.acquire()
        held = [True]

        def leave() -> None:
            if held:
                held.pop()
                self._free.release()

        loop = asyncio.get_running_loop()
        began, timer = loop.time(), loop.call_later(self.seconds, leave)
        try:
            yield
            self.seconds = min(max(self._least, 2 * (loop.time() - began)), self._longest)
        finally:
            timer.cancel()
            leave()
