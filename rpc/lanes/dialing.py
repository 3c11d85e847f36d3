"""Places for those connections of a lane that are being made: when a worker dies, all others dial one another at once.

A dial that takes long goes on without its place, because its peer may take a minute to answer and must not hold up the others.
But where all dials take long, the machine is busy, and more of them at once would take longer still, until none is over in the
time that a handshake may take. So the dials that succeed say how long a place may be held.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

MOST = 4
PLACE_SECONDS = 0.5  # to begin with
LONGEST_SECONDS = 5.0


class DialingPlaces:
    """At most ``most`` dials go on at a time; one that takes too long goes on without a place.

    Args:
        most: number of places.
        seconds: for which a dial may have one: at first, and at least.
        longest: the same, at most: it is twice the time that the last dial took.

    Attributes:
        seconds: the same, now.
    """

    def __init__(self, most: int = MOST, seconds: float = PLACE_SECONDS, longest: float = LONGEST_SECONDS) -> None:
        self.seconds = self._least = seconds
        self._longest = max(seconds, longest)
        self._free = asyncio.Semaphore(most)

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place, and have it inside the block. On the loop."""
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
