"""Orphans: processes below the launcher whose parent has ended. It adopts them, so that no exit code is lost."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
UNKNOWN = 255  # exit code of a worker that this process could not adopt: no other process can tell it


@contextmanager
def adoption() -> Iterator[None]:
    """Be the parent of each process below this one whose own parent ends, in the block (``PR_SET_CHILD_SUBREAPER``)."""
    libc, before = ctypes.CDLL(None), ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def adopted_exit_code(pid: int) -> int:
    """Return the exit code of an adopted process, which has ended; minus the number, for a signal."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return UNKNOWN


def reap_orphans() -> None:
    """Reap what is dead of the adopted processes, but for those that lead a session: these may have an owner that waits."""
    for pid in _children():
        with suppress(OSError):  # it was reaped meanwhile
            state, _parent, _group, session = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:4]
            if state == b"Z" and int(session) not in (pid, os.getsid(0)):
                os.waitpid(pid, os.WNOHANG)


def _children() -> Iterator[int]:
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):  # the thread has ended, or the kernel has no such file
            yield from map(int, Path(f"/proc/self/task/{thread}/children").read_bytes().split())
