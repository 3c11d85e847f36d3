"""MPI in this process: whether ``mpiexec`` started it, and mpi4py."""

from __future__ import annotations

import atexit
import os
import stat
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from typing import Any

OUTPUT_FILES = (1, 2)  # standard output and error
OUTPUT_SECONDS = 2.0
OUTPUT_LOOK_SECONDS = 0.002
VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")


def started_by_mpi() -> bool:
    """Return whether this process is one of those that ``mpiexec`` started (MPICH's, Open MPI's, or one that speaks PMIx)."""
    return any(name in os.environ for name in VARIABLES)


def load() -> Any:
    """Return mpi4py's module ``MPI``; the first call initializes MPI.

    Raises:
        ImportError: mpi4py or an MPI library is not installed.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"MPI needs mpi4py and an MPI library ({error}): pip install mpi4py mpich", name="mpi4py"
        ) from error
    return MPI


@cache  # once is enough
def end_all_on_failure() -> None:
    """Let an exception that ends this process's program end all processes of ``mpiexec``.

    Without that the others would wait for this one, and this one for them: MPI's finalizer waits for all.
    """
    atexit.register(_abort_if_failed)
    # Exit handlers run when all threads that are not daemons have ended, and one may never do that.
    with suppress(RuntimeError):  # the main thread has ended already
        threading._register_atexit(_abort_if_failed)  # type: ignore[attr-defined]  # as concurrent.futures does


def _abort_if_failed() -> None:
    # The interpreter sets these for an exception that nothing caught. In an interactive session they are of an earlier one.
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None or hasattr(sys, "ps1"):
        return
    mpi = load()
    if mpi.Is_initialized() and not mpi.Is_finalized():
        hand_over_output()
        mpi.COMM_WORLD.Abort(1)


def hand_over_output() -> None:
    """Wait until mpiexec has read the last lines of this process: at Abort it drops what is still in their pipes."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed
            stream.flush()
    late = time.monotonic() + OUTPUT_SECONDS
    for descriptor in OUTPUT_FILES:
        with suppress(OSError):
            while unread_bytes(descriptor) and time.monotonic() < late:
                time.sleep(OUTPUT_LOOK_SECONDS)


def unread_bytes(descriptor: int) -> int:
    """Return how many bytes of a pipe its reader has not read yet; 0 if it is no pipe.

    Raises:
        OSError: it is closed.
    """
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return 0
    import fcntl  # here, because only a program that fails under mpiexec needs them
    import termios

    count = fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4))
    return int.from_bytes(count, sys.byteorder)
