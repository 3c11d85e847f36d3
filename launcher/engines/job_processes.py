"""Search for the processes that the workers of a job left running, and their end. Also a program: the job's guardian.

A process belongs to a job if it carries the job's mark in its environment, which children inherit, or is in the session of one
of its workers. A process can drop either (``env -i``, ``setsid``); together they find what a process group misses.

As a program it reads sessions from its standard input and ends the job when that closes: the launcher holds the other end, so
this happens also when the launcher is killed with ``kill -9``. Then it removes the workers' credentials. It is run by path
(``python -I -S job_processes.py JOB CREDENTIALS``), so it has no relative imports.
"""

import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress

JOB_MARK = "TELEGRAD_JOB"
HELPERS = (b"from multiprocessing.resource_tracker import main", b"from multiprocessing.forkserver import main")
"""First arguments of processes that Python starts for itself and that end a moment after their worker."""
JOB_GRACE_SECONDS = 0.5
"""Time between TERM and KILL: enough for helpers that clean up after their worker, like multiprocessing's."""
MOST_ROUNDS = 10


def find(job: str | None, sessions: Collection[int], spared: Collection[int] = ()) -> list[int]:
    """Return the ids of the job's processes, without this process.

    Args:
        job, sessions, spared: as for ``end``.
    """
    pids = {int(name) for name in os.listdir("/proc") if name.isdecimal()} - {os.getpid(), *spared}
    return [pid for pid in sorted(pids) if _belongs(pid, job, sessions)]


def end(job: str | None, sessions: Collection[int], spared: Collection[int] = ()) -> list[int]:
    """End every process of the job, with TERM and then KILL.

    Args:
        job: the job's mark; None ends the sessions only.
        sessions: sessions of its workers.
        spared: ids of processes that go on.

    Returns:
        The ids of the processes that were running, without Python's own helpers.
    """
    found = find(job, sessions, spared)
    to_tell = [pid for pid in found if not _is_helper(pid)]
    _signal_and_wait(found, job, sessions, signal.SIGTERM, JOB_GRACE_SECONDS)
    for _ in range(MOST_ROUNDS):  # again, because a process may fork during the search
        survivors = find(job, sessions, spared)
        if not survivors:
            break
        _signal_and_wait(survivors, job, sessions, signal.SIGKILL, JOB_GRACE_SECONDS)
    return to_tell


def _is_helper(pid: int) -> bool:
    """Return whether it is one of Python's helpers, or has ended by itself."""
    until = time.monotonic() + JOB_GRACE_SECONDS
    try:
        while not (command := _read(pid, "cmdline")) and time.monotonic() < until:
            time.sleep(0.01)  # it has none for a moment while it starts, and for good when it has ended
    except OSError:
        return True
    return not command or any(argument.startswith(HELPERS) for argument in command.split(b"\0"))


def _belongs(pid: int, job: str | None, sessions: Collection[int]) -> bool:
    try:
        state, _parent, _group, session = _read(pid, "stat").rpartition(b")")[2].split()[:4]
        if state in b"ZX":
            return False
        return int(session) in sessions or (job is not None and _is_marked(pid, job))
    except OSError:  # gone, or another user's
        return False


def _is_marked(pid: int, job: str) -> bool:
    for variable in _read(pid, "environ").split(b"\0"):
        name, _, value = variable.partition(b"=")
        if name == JOB_MARK.encode():
            return job.encode() in value.split(b"/")
    return False


def _read(pid: int, file: str) -> bytes:
    with open(f"/proc/{pid}/{file}", "rb") as opened:
        return opened.read()


def _signal_and_wait(pids: list[int], job: str | None, sessions: Collection[int], signum: int, seconds: float) -> None:
    descriptors = []
    for pid in pids:
        with suppress(OSError):
            descriptors.append(os.pidfd_open(pid))
            if _belongs(pid, job, sessions):  # again: another process may have the number by now
                signal.pidfd_send_signal(descriptors[-1], signum)
    _wait_for_exits(descriptors, seconds)


def _wait_for_exits(descriptors: list[int], seconds: float) -> None:
    """Wait until all processes have ended, at most ``seconds``; close their pidfds."""
    until = time.monotonic() + seconds
    poll = select.poll()
    running = set(descriptors)
    for descriptor in running:
        poll.register(descriptor, select.POLLIN)
    while running and (left := until - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left * 1000):
            poll.unregister(descriptor)
            running.discard(descriptor)
    for descriptor in descriptors:
        os.close(descriptor)


def _guard(job: str, credentials: str) -> None:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)  # it must outlive the launcher
    sessions = {int(line) for line in sys.stdin}
    end(job, sessions)
    shutil.rmtree(credentials, ignore_errors=True)


if __name__ == "__main__":
    _guard(*sys.argv[1:])
