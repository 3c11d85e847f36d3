"""Processes, as the kernel tells of them: states of those of workers that do not answer, and the memory of this one."""

from __future__ import annotations

import os
import resource
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from ...base.processes import PROC, ProcessStatus, process_status
from ..lanes.addresses import host_of

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord

STATM = "/proc/self/statm"
MOST_STATM_BYTES = 256
BUSY_SHARE = 0.05  # of the time between two looks, spent on a processor: it runs, as far as a busy machine lets it


class ProcessLook(NamedTuple):
    """Look at a process.

    Attributes:
        process_id: its id.
        status: what the kernel told of it; None if there was no such process.
        at: when it was looked at, in monotonic seconds.
    """

    process_id: int
    status: ProcessStatus | None
    at: float

    @property
    def stopped(self) -> bool:
        """Return whether it was stopped (SIGSTOP)."""
        return self.status is not None and self.status.state == "stopped"


def look_at_process(process_id: int) -> ProcessLook:
    """Return what the kernel tells of a process of this machine."""
    return ProcessLook(process_id, process_status(process_id), time.monotonic())


def state_between(before: ProcessLook, after: ProcessLook) -> str:
    """Return the state of a process between two looks at it; empty if it is not known.

    Args:
        before: the first look.
        after: the second one.

    Returns:
        "stopped", "running" (it used a processor), "sleeping", "in the kernel" or "dead".
    """
    if before.status is None or after.status is None:
        return ""
    # A thread that is not the main one may run, so the state of that one alone does not tell.
    used, elapsed = after.status.cpu_seconds - before.status.cpu_seconds, after.at - before.at
    if after.status.state not in ("dead", "stopped") and used > BUSY_SHARE * elapsed:
        return "running"
    return after.status.state


def on_this_machine(other: WorkerRecord, me: WorkerRecord) -> bool:
    """Return whether a worker of another process listens at a host where this one does: then the kernel here knows its process.

    Args:
        other: the record of the worker.
        me: that of this worker.
    """
    if other.process_id in (0, me.process_id) or not PROC.is_dir():
        return False
    return not _hosts(other).isdisjoint(_hosts(me))


def _hosts(record: WorkerRecord) -> set[str]:
    return {host_of(each.partition("://")[2]) for each in record.addresses} - {
        ""
    }  # a Unix socket's address has no host


def resident_bytes() -> int:
    """Return the resident memory of this process; where the system does not tell, the largest that it had."""
    try:
        # Looks come again and again, so without a file object; a kept descriptor would save 2 microseconds of 5.
        descriptor = os.open(STATM, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(descriptor, MOST_STATM_BYTES).split()[1]) * resource.getpagesize()
        finally:
            os.close(descriptor)
    except OSError:
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024
