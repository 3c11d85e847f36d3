"""Files that must belong to this user: opened without following links and without blocking, and checked before any use."""

from __future__ import annotations

import errno
import os
import stat


def open_private(path: str, flags: int, forbidden: int) -> int:
    """Open a regular file of this user and return its descriptor.

    Args:
        path: the file. A link in its last component is not followed.
        flags: as for ``os.open``; a file that is created gets mode 0600.
        forbidden: bits of the file's mode that must not be set.

    Raises:
        OSError: the file cannot be opened, is no regular file, belongs to another user, or has a forbidden mode; ``strerror``
            says which.
    """
    # O_NONBLOCK: opening a FIFO or a device would wait for its other end. Later reads of a regular file ignore it.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    facts = os.fstat(descriptor)
    if problem := _problem(facts, forbidden):
        os.close(descriptor)
        raise OSError(errno.EPERM, problem)
    return descriptor


def _problem(facts: os.stat_result, forbidden: int) -> str:
    mode = stat.S_IMODE(facts.st_mode)
    if not stat.S_ISREG(facts.st_mode):
        return "it is no regular file"
    if facts.st_uid != os.geteuid():
        return f"it belongs to user {facts.st_uid}, you are user {os.geteuid()}"
    if mode & forbidden:
        return f"others may use it: mode {mode:o}"
    return ""
