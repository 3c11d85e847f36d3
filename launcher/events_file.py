"""File of the workers' last events (``core/last_events.py``): anonymous memory, of which each worker maps its part."""

import os
import time
from contextlib import suppress
from pathlib import Path

from ..core.last_events import LAST_EVENTS_BYTES, events_variable, read_calls, read_last_events

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

    def write_trace(self, rank: int, name: str, number: int, path: Path) -> bool:
        """Write a trace of what a worker noted last, for ``merge_traces``; return whether it had served a call.

        Args:
            rank: the worker, among those of this launcher.
            name: its name.
            number: its rank in the job.
            path: the file.
        """
        memory = os.pread(self._descriptor, LAST_EVENTS_BYTES, rank * LAST_EVENTS_BYTES)
        if not (calls := read_calls(memory)):
            return False
        from ..core.last_trace import write_last_trace  # here: few workers are killed

        with suppress(OSError):
            write_last_trace(path, name, number, calls, read_last_events(memory), time.perf_counter_ns())
            return True
        return False

    def close(self) -> None:
        """Close the file; workers may still write."""
        os.close(self._descriptor)
