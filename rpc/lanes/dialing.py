"""Places for those connections of a lane that are being made: when a worker dies, all others dial one another at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

MOST = 4
PLACE_SECONDS = 0.5  # a peer may take a minute to answer, and must not hold up the others


class DialingPlaces:
    """At most ``most`` dials go on at a time; one that takes longer than ``seconds`` goes on without a place.

    Args:
        most: number of places.
        seconds: for which a dial may have one.
    """

    def __init__(self, most: int = MOST, seconds: float = PLACE_SECONDS) -> None:
        self._seconds = seconds
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

        timer = asyncio.get_running_loop().call_later(self._seconds, leave)
        try:
            yield
        finally:
            timer.cancel()
            leave()
