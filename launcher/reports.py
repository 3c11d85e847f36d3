"""Reader of the reports of a job's workers (``core/worker_reports.py``): turns them into events of the supervisor."""

import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

from ..core.worker_reports import Leaving, variable
from .supervisor import Failed, Joined, Left, Report

CHUNK = 1 << 20
LOOK_EVERY = 1.0
"""Seconds after which a launcher looks for reports if nothing else wakes it: of a worker that failed and does not end."""


class Reports:
    """File of one job's reports. A launcher reads it before it looks at anything else that its workers did."""

    def __init__(self) -> None:
        self.tracebacks: dict[int, str] = {}  # by rank: of the exception that ended its program
        self.descriptor = os.memfd_create("telegrad-reports")
        flags = fcntl.fcntl(self.descriptor, fcntl.F_GETFL)
        fcntl.fcntl(
            self.descriptor, fcntl.F_SETFL, flags | os.O_APPEND
        )  # workers share it, and each write goes to the end
        self._offset = 0
        self._unread = b""

    def environment(self, rank: int) -> dict[str, str]:
        """Environment variable by which a worker finds the descriptor that it inherits."""
        return variable(self.descriptor, rank)

    def read(self) -> Iterator[Report]:
        """Yield the reports that came since the last call."""
        while data := os.pread(self.descriptor, CHUNK, self._offset):
            self._offset += len(data)
            *lines, self._unread = (self._unread + data).split(b"\n")
            for line in lines:
                if report := self._parse(line):
                    yield report

    def close(self) -> None:
        """Close the file; workers may still write."""
        os.close(self.descriptor)

    def _parse(self, line: bytes) -> Report | None:
        facts: dict[str, Any] = json.loads(line)
        rank = facts["rank"]
        match facts["kind"]:
            case "joined":
                return Joined(rank, facts["name"])
            case "left":
                how = Leaving(facts["how"])
                return Left(rank, shut_down=how is not Leaving.EXIT, agreed=how is Leaving.AGREED)
            case "failed":
                self.tracebacks[rank] = facts["traceback"]
                return Failed(rank, tuple(facts["lost"]))
        return None
