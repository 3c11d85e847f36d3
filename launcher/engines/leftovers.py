"""Finds and ends what the workers of a job left running. Also a program: the job's guardian.

A process belongs to a job if it carries the job's mark in its environment, which children inherit, or sits in the
session of one of its workers. Either alone can be shed (``env -i``, ``setsid``); together they find the grandchildren
that a process group misses.

As a program it reads sessions from its standard input and ends the job when that closes: the launcher holds the other
end, so this happens also when the launcher is killed with ``kill -9``. Run by path (``python -I -S leftovers.py
JOB``), hence no relative imports.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress

MARK = "TELEGRAD_JOB"
HELPERS = (b"from multiprocessing.resource_tracker import main", b"from multiprocessing.forkserver import main")
"""Processes that Python starts for itself and ends a moment after its worker."""
PATIENCE = 0.5
"""Seconds between TERM and KILL: enough for helpers that clean up when their worker is gone, like multiprocessing's."""


def mark(job: str) -> dict[str, str]:
    """The environment variable that marks a job's processes; a job inside a job's worker carries both marks."""
    outer = os.environ.get(MARK)
    return {MARK: f"{outer}/{job}" if outer else job}


def members(job: str, sessions: Collection[int]) -> list[int]:
    """The process ids that belong to the job, this process excepted."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    return [pid for pid in pids if pid != os.getpid() and _belongs(pid, job, sessions)]


def end(job: str, sessions: Collection[int]) -> list[int]:
    """Ends every process of the job, with TERM and then KILL; returns the ids of those that it found, helpers of Python
    excepted."""
    found = members(job, sessions)
    noteworthy = [pid for pid in found if not _is_helper(pid)]
    _signal_and_wait(found, job, sessions, signal.SIGTERM, PATIENCE)
    for _ in range(10):  # again, because a process may fork while we look
        survivors = members(job, sessions)
        if not survivors:
            break
        _signal_and_wait(survivors, job, sessions, signal.SIGKILL, PATIENCE)
    return noteworthy


def _is_helper(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as command:
            return any(argument.startswith(HELPERS) for argument in command.read().split(b"\0"))
    except OSError:  # it has ended by itself
        return True


def _belongs(pid: int, job: str, sessions: Collection[int]) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            state, _parent, _group, session = stat.read().rpartition(b")")[2].split()[:4]
        if state in b"ZX":
            return False
        return int(session) in sessions or _is_marked(pid, job)
    except OSError:  # gone, or another user's
        return False


def _is_marked(pid: int, job: str) -> bool:
    with open(f"/proc/{pid}/environ", "rb") as environ:
        for variable in environ.read().split(b"\0"):
            name, _, value = variable.partition(b"=")
            if name == MARK.encode():
                return job.encode() in value.split(b"/")
    return False


def _signal_and_wait(pids: list[int], job: str, sessions: Collection[int], signum: int, seconds: float) -> None:
    descriptors = []
    for pid in pids:
        with suppress(OSError):
            descriptors.append(os.pidfd_open(pid))
            if _belongs(pid, job, sessions):  # asked again: the number could be another process's by now
                signal.pidfd_send_signal(descriptors[-1], signum)
    _wait_for_deaths(descriptors, seconds)


def _wait_for_deaths(descriptors: list[int], seconds: float) -> None:
    """Waits until all have died, but no longer than that; closes the descriptors."""
    until = time.monotonic() + seconds
    poll = select.poll()
    alive = set(descriptors)
    for descriptor in alive:
        poll.register(descriptor, select.POLLIN)
    while alive and (left := until - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left * 1000):
            poll.unregister(descriptor)
            alive.discard(descriptor)
    for descriptor in descriptors:
        os.close(descriptor)


def _guard(job: str) -> None:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)  # it must outlast the launcher
    sessions = {int(line) for line in sys.stdin}
    end(job, sessions)


if __name__ == "__main__":
    _guard(sys.argv[1])
