"""File of the workers' last events (``core/last_events.py``): anonymous memory, of which each worker maps its part."""

import os

from ..core.last_events import LAST_EVENTS_BYTES, events_variable, read_last_events

MOST_TOLD_EVENTS = 8


class EventsFile:
    """Memory for the last events of the workers of one job. Without memory for it, workers note none.

    Args:
        size: how many workers there are.
    """

    def __init__(self, size: int) -> None:
        self._descriptor = os.memfd_create("telegrad-last-events")
        os.ftruncate(self._descriptor, size * LAST_EVENTS_BYTES)  # a page takes memory when it is written

    def variable(self, rank: int) -> dict[str, str]:
        """Return the environment variable of a worker."""
        return events_variable(self._descriptor, rank)

    def told(self, rank: int, now: float) -> tuple[str, ...]:
        """Return in words what a worker noted last, the latest last.

        Args:
            rank: the worker.
            now: monotonic seconds, from which times count back.
        """
        noted = read_last_events(os.pread(self._descriptor, LAST_EVENTS_BYTES, rank * LAST_EVENTS_BYTES))
        return tuple(f"{max(now - each.at, 0.0):.1f} s before: {each.text}" for each in noted[-MOST_TOLD_EVENTS:])

    def close(self) -> None:
        """Close the file; workers may still write."""
        os.close(self._descriptor)
