"""Expulsion: the process of a worker that its job counts as lost exits with a failure, and calls there say why they fail."""

from __future__ import annotations

import ctypes

from ...base.worker_reports import reporter

EXIT_CODE = 1
_expelled: dict[str, str] = {}  # name of the worker, and why


def record_expulsion(worker: str, reason: str) -> None:
    """Make this process, which is that worker's, exit with a failure even if user code ends normally."""
    if not _expelled:
        _fail_at_exit()
        if launcher := reporter():
            launcher.expelled = True
    _expelled[worker] = reason


def reasons() -> dict[str, str]:
    """Return the expelled workers of this process, and why they were."""
    return dict(_expelled)


def _fail_at_exit() -> None:
    # Python offers no way to change the exit code after user code has ended, except os._exit(), which would skip the exit
    # handlers, flushes and finalizers of others. The C library runs its own handlers after all of these.
    library = ctypes.CDLL(None)
    library.__cxa_atexit(library._exit, ctypes.c_void_p(EXIT_CODE), None)
