"""Processes of this machine, as ``/proc`` tells of them: the time of their start, which tells a process from a later one of the
same number, their state, their memory.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
MOST_STATUS_BYTES = 4096
CREDENTIALS = struct.Struct("3i")  # process, user, group
STATES = {
    "R": "running",
    "S": "sleeping",
    "I": "sleeping",
    "D": "in the kernel",
    "T": "stopped",
    "t": "stopped",
    "Z": "dead",
    "X": "dead",
}
STATE, USER_TICKS, SYSTEM_TICKS, START, RESIDENT = (
    number - 3 for number in (3, 14, 15, 22, 24)
)  # fields after the name


class ProcessStatus(NamedTuple):
    """State of a process.

    Attributes:
        state: "running", "sleeping", "in the kernel", "stopped" or "dead".
        start: time of its start, in ticks since the machine's.
        cpu_seconds: processor time that it has used.
        memory_bytes: its resident memory.
    """

    state: str
    start: int
    cpu_seconds: float
    memory_bytes: int


def process_status(process_id: int) -> ProcessStatus | None:
    """Return the state of a process; None if there is none of that number, or the system does not tell."""
    try:
        fields = _read(f"/proc/{process_id}/stat").rpartition(b")")[2].split()
        ticks = int(fields[USER_TICKS]) + int(fields[SYSTEM_TICKS])
        return ProcessStatus(
            STATES.get(fields[STATE].decode(), "sleeping"),
            int(fields[START]),
            ticks / os.sysconf("SC_CLK_TCK"),
            int(fields[RESIDENT]) * os.sysconf("SC_PAGE_SIZE"),
        )
    except (OSError, ValueError, IndexError):
        return None


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # less work than a file object, for looks at many processes
    try:
        return os.read(descriptor, MOST_STATUS_BYTES)
    finally:
        os.close(descriptor)


def cpu_clock_seconds(process_id: int) -> float | None:
    """Return the processor time that a process has used, to the nanosecond; None if it has ended, or the system does not tell.

    Linux numbers the clocks of processes so; ``clock_getcpuclockid``, which Python does not have, returns this number.
    """
    try:
        return time.clock_gettime(~process_id << 3 | 2)
    except OSError:
        return None


def process_user(process_id: int) -> int:
    """Return the user whose process it is; -1 if there is none of that number."""
    with suppress(OSError):
        return os.stat(PROC / str(process_id)).st_uid
    return -1


@lru_cache(maxsize=1)
def numbers_place() -> str:
    """Return the place in which a number means one process: this start of the machine, and the namespace of its numbers."""
    parts = []
    with suppress(OSError):
        parts.append((PROC / "sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink(PROC / "self/ns/pid"))
    return " ".join(parts)


def caught_signals(process_id: int) -> int:
    """Return the signals that a process handles or ignores, as bits; 0 if the system does not tell."""
    with suppress(OSError, ValueError):
        lines = (PROC / str(process_id) / "status").read_text(errors="replace").splitlines()
        masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigCgt:", "SigIgn:"))]
        return masks[0] | masks[1] if len(masks) == 2 else 0
    return 0


def peer_process(connection: socket.socket) -> tuple[int, int]:
    """Return process and user of the other end of a Unix socket's connection, as the kernel knows them."""
    process, user, _ = CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    )
    return process, user
