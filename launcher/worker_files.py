"""Files by which the workers of a job tell their launcher what happens: their reports, and what they did last.

Both stay readable when a worker is killed. The launcher makes them, and names them in each worker's environment.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..base.last_events import EVENTS_VARIABLE, LAST_EVENTS_BYTES, read_calls, read_last_events
from ..base.worker_reports import VARIABLE as REPORTS_VARIABLE
from ..base.worker_reports import Leaving
from .events import Failed, Joined, Left, Lost, Report

REPORT_READ_BYTES = 1 << 20
MOST_TOLD_EVENTS = 8


class ReportFile:
    """Anonymous file that the workers of one job inherit, and append their reports to (``base/worker_reports.py``).

    A launcher reads it before it looks at anything else that its workers did, so that it sees causes before consequences.
    """

    def __init__(self) -> None:
        self.tracebacks: dict[int, str] = {}  # by rank: of the exception that ended its program
        self.descriptor = os.memfd_create("telegrad-reports")
        # Workers share the file's offset; each write goes to the end.
        flags = fcntl.fcntl(self.descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self.descriptor, fcntl.F_SETFL, flags | os.O_APPEND)
        self._offset = 0
        self._unread = b""

    def variable(self, rank: int) -> dict[str, str]:
        """Return the environment variable of a worker, which inherits the file. The inode tells it from another one."""
        return {REPORTS_VARIABLE: f"{self.descriptor}:{os.fstat(self.descriptor).st_ino}:{rank}"}

    def read(self) -> Iterator[Report]:
        """Yield the reports that came since the last call, as events of the supervisor."""
        while data := os.pread(self.descriptor, REPORT_READ_BYTES, self._offset):
            self._offset += len(data)
            *lines, self._unread = (self._unread + data).split(b"\n")
            yield from map(self._parse, lines)

    def skip(self) -> None:
        """Leave out what has been reported and not been read: it is of processes that have ended."""
        self._offset, self._unread = os.fstat(self.descriptor).st_size, b""

    def close(self) -> None:
        """Close the file; workers may still write."""
        os.close(self.descriptor)

    def _parse(self, line: bytes) -> Report:
        facts: dict[str, Any] = json.loads(line)
        rank = facts["rank"]
        match facts["kind"]:
            case "joined":
                return Joined(rank, facts["name"], facts.get("together", False))
            case "lost":
                return Lost(rank, facts["worker"], facts["reason"])
            case "left":
                how = Leaving(facts["how"])
                return Left(rank, shut_down=how is not Leaving.EXIT, agreed=how is Leaving.AGREED)
            case _:
                self.tracebacks[rank] = facts["traceback"]
                return Failed(rank, tuple(facts["lost"]), facts["traceback"].rstrip().rpartition("\n")[2])


class EventsFile:
    """Anonymous memory for the last events of the workers of one job (``base/last_events.py``), of which each maps its part.

    Without memory for it, workers note none.

    Args:
        size: how many workers there are.
    """

    def __init__(self, size: int) -> None:
        self._descriptor = os.memfd_create("telegrad-last-events")
        os.ftruncate(self._descriptor, size * LAST_EVENTS_BYTES)  # a page takes memory when it is written

    def grow(self, size: int) -> None:
        """Make room for the last events of so many workers in all."""
        os.ftruncate(self._descriptor, size * LAST_EVENTS_BYTES)

    def variable(self, rank: int) -> dict[str, str]:
        """Return the environment variable of a worker."""
        return {EVENTS_VARIABLE: f"/proc/{os.getpid()}/fd/{self._descriptor}:{rank * LAST_EVENTS_BYTES}"}

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
