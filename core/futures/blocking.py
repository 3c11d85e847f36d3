"""Ways of a thread to block while it waits for a future: its own, or one that its owner has chosen."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from numbers import Real
from typing import Any, Protocol

from ...base.errors import ArgumentTypeError, ArgumentValueError
from .protection import opens
from .reentry import check_may_wait
from .shield import shield


class Blocker(Protocol):
    """A way to block a thread: a pool lets another thread run meanwhile, an event loop refuses."""

    def block(self, acquire: Callable[[float], bool], timeout: float) -> bool:
        """Run ``acquire(timeout)``, which blocks up to ``timeout`` seconds (-1: without limit), and return its result."""
        ...


class Driver(Protocol):
    """A way in which a thread that waits for a future helps it to complete: it reads the socket that brings the answer."""

    def drive(self, future: Any, until: float) -> None:
        """Wait for the future until a time in monotonic seconds; return earlier if there is no way to help."""
        ...


class Canceller(Protocol):
    """A way to end what computes a future's value: the caller's table of calls, a coroutine's task."""

    def cancel(self, future: Any) -> bool:
        """Have it end, and the future complete, now or soon; return False if it has completed already."""
        ...


class _ThreadRole(threading.local):
    """Role of a thread, set by its owner.

    Attributes:
        blocker: how it blocks; read by every ``wait`` in it.
        awaited: the future for which it reads a socket at the moment.
        inside: it runs protected code that may hold locks; code that interrupts it looks (``reentry.py``).
        task: what completes that future, if it may run user code: the thread runs it when it has stopped reading.
    """

    blocker: Blocker | None = None
    awaited: object = None
    inside: bool = False
    task: Callable[[], object] | None = None


thread_role = _ThreadRole()


class Waiter:
    """Wakes one thread that waits for something; waking it twice does no harm."""

    __slots__ = ("_gate",)

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()

    def release(self) -> None:
        """Wake the thread. Any thread."""
        try:
            self._gate.release()
        except RuntimeError:
            pass  # it was woken already

    @opens
    def sleep(self, seconds: float) -> bool:
        """Block up to ``seconds`` (-1: without limit); return whether it was woken."""
        if shield.noted:
            shield.deliver()
        return self._gate.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))


def check_wait_seconds(timeout: Any) -> None:
    """Raise if a time-out is no number of seconds; none is left of a negative one.

    Raises:
        ArgumentTypeError: it is no number.
        ArgumentValueError: it is nan, or no number that a float holds.
    """
    wrong = f"timeout must be a number of seconds, None for no limit; you gave {timeout!r}"
    if not isinstance(timeout, (int, float, Real)):
        raise ArgumentTypeError(wrong)
    size: Any = abs(timeout)
    if not size <= sys.float_info.max and size != math.inf:
        raise ArgumentValueError(wrong)


def block(acquire: Callable[[float], bool], until: float) -> bool:
    """Return ``acquire(seconds)``, which blocks until a time, in the way that this thread blocks.

    Args:
        acquire: gets the seconds that are left; -1 for no limit.
        until: in monotonic seconds; ``inf`` for no limit.

    Raises:
        RuntimeError: this is a signal handler that must not wait (``check_may_wait``).
    """
    check_may_wait()
    seconds = -1.0 if until == float("inf") else max(until - time.monotonic(), 0.0)
    blocker = thread_role.blocker
    return acquire(seconds) if blocker is None else blocker.block(acquire, seconds)
