"""``thread_role``: how a thread blocks while it waits for a future, if the owner of the thread has chosen a way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Blocker(Protocol):
    """A way to block a thread: a pool lets another thread run meanwhile, an event loop refuses."""

    def block(self, acquire: Callable[[float], bool], timeout: float) -> bool:
        """Run ``acquire(timeout)``, which blocks up to ``timeout`` seconds (-1: without limit), and return its result."""
        ...


class _ThreadRole(threading.local):
    blocker: Blocker | None = None


# Set by the owner of a thread, read by every ``wait`` in it.
thread_role = _ThreadRole()
