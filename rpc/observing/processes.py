"""States of processes of this machine, as the kernel tells them: for workers that do not answer."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..lanes.addresses import host_of

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord

PROCESSES = Path("/proc")
BUSY_SHARE = 0.05  # of the time between two looks, spent on a processor: it runs, as far as a busy machine lets it
STATES = {"T": "stopped", "t": "stopped", "R": "running", "S": "sleeping", "I": "sleeping", "D": "in the kernel"}
GONE_LETTERS = {"Z": "dead", "X": "dead", "x": "dead"}


class ProcessLook(NamedTuple):
    """Look at a process.

    Attributes:
        process_id: its id.
        state: letter of its main thread's state, as in ``/proc/PID/stat``; empty if there is no such process.
        cpu_seconds: processor time that all its threads have used.
        at: when it was looked at, in monotonic seconds.
    """

    process_id: int
    state: str
    cpu_seconds: float
    at: float


def look_at_process(process_id: int) -> ProcessLook:
    """Return what the kernel tells of a process of this machine."""
    try:
        fields = (PROCESSES / str(process_id) / "stat").read_text().rpartition(")")[2].split()
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return ProcessLook(process_id, "", 0.0, time.monotonic())
    return ProcessLook(process_id, fields[0], used, time.monotonic())


def state_between(before: ProcessLook, after: ProcessLook) -> str:
    """Return the state of a process between two looks at it; empty if it is not known.

    Args:
        before: the first look.
        after: the second one.

    Returns:
        "stopped", "running" (it used a processor), "sleeping", "in the kernel" or "dead".
    """
    if not before.state or not after.state:
        return ""
    if after.state in GONE_LETTERS:
        return GONE_LETTERS[after.state]
    # A thread that is not the main one may run, so the letter alone does not tell.
    used, elapsed = after.cpu_seconds - before.cpu_seconds, after.at - before.at
    if after.state not in "Tt" and used > BUSY_SHARE * elapsed:
        return "running"
    return STATES.get(after.state, "")


def on_this_machine(other: WorkerRecord, me: WorkerRecord) -> bool:
    """Return whether a worker of another process listens at a host where this one does: then the kernel here knows its process.

    Args:
        other: the record of the worker.
        me: that of this worker.
    """
    if other.process_id in (0, me.process_id) or not PROCESSES.is_dir():
        return False
    return not _hosts(other).isdisjoint(_hosts(me))


def _hosts(record: WorkerRecord) -> set[str]:
    return {host_of(each.partition("://")[2]) for each in record.addresses} - {
        ""
    }  # a Unix socket's address has no host
