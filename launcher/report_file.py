"""File to which a job's workers append their reports (``core/worker_reports.py``), read as events of the supervisor."""

import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

from ..core.worker_reports import Leaving
from .supervisor import Failed, Joined, Left, Lost, Report

REPORT_READ_BYTES = 1 << 20


class ReportFile:
    """Anonymous file that the workers of one job inherit.

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

    def read(self) -> Iterator[Report]:
        """Yield the reports that came since the last call."""
        while data := os.pread(self.descriptor, REPORT_READ_BYTES, self._offset):
            self._offset += len(data)
            *lines, self._unread = (self._unread + data).split(b"\n")
            yield from map(self._parse, lines)

    def close(self) -> None:
        """Close the file; workers may still write."""
        os.close(self.descriptor)

    def _parse(self, line: bytes) -> Report:
        facts: dict[str, Any] = json.loads(line)
        rank = facts["rank"]
        match facts["kind"]:
            case "joined":
                return Joined(rank, facts["name"])
            case "lost":
                return Lost(rank, facts["worker"], facts["reason"])
            case "left":
                how = Leaving(facts["how"])
                return Left(rank, shut_down=how is not Leaving.EXIT, agreed=how is Leaving.AGREED)
            case _:
                self.tracebacks[rank] = facts["traceback"]
                return Failed(rank, tuple(facts["lost"]))
