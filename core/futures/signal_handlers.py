"""Signal handlers, which Python runs in the middle of whatever the main thread does: what they raise, and their waits."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

from .protection import protects


def _folders(*packages: str) -> tuple[str, ...]:
    return tuple(str(Path(__file__).parents[2] / package) + os.sep for package in packages)


# Packages with locks that other threads need to bring an answer, or to end a wait at its deadline.
LOCKING = _folders(
    "agents", "autograd_dist", "collective", "core/futures", "core/shared_memory", "pipelining", "rpc", "rref"
)
COMPUTING = _folders("core", "data", "distributions", "func", "nn", "optim")  # called by those while no lock is held


def raised_by_handler(error: BaseException) -> bool:
    """Return whether a signal handler raised an error: it is for the user, and tells nothing of what it interrupted."""
    handlers = _handlers()
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def check_may_wait() -> None:
    """Refuse to wait in a signal handler that interrupted this library where it may hold a lock.

    The thread that brings the answer, or ends the wait at its deadline, may need that lock. No thread but the main one runs
    signal handlers. A thread asks before it sleeps, and before it waits inside another wait. To walk over the frames takes a
    microsecond or two, so frames are compared by their files, and handlers looked up only if code of this library has called
    the code that waits.

    Raises:
        RuntimeError: it is one; the message names the handler.
    """
    if threading.get_ident() != _main:
        return
    first = sys._getframe(1)
    frame: FrameType | None = first
    others = False  # a frame of other code was seen
    while frame is not None:
        if not _locks(frame.f_code.co_filename):
            others = True
        elif others:
            _check_handlers(first)
            return
        frame = frame.f_back


def _check_handlers(frame: FrameType) -> None:
    for number, handler in _running(frame):
        if _may_hold_lock(handler.f_back):
            _refuse(number, handler.f_code)


def _running(frame: FrameType | None) -> Iterator[tuple[int, FrameType]]:
    """Iterate over the handlers that run, from a frame outwards."""
    handlers = _handlers()
    while frame is not None:
        if (number := handlers.get(frame.f_code)) is not None:
            yield number, frame
        frame = frame.f_back


def _may_hold_lock(frame: FrameType | None) -> bool:
    """Return whether the innermost code of this library, from a frame outwards, may hold a lock that is needed elsewhere."""
    while frame is not None:
        if _locks(path := frame.f_code.co_filename):
            return protects(frame) is not False
        if path.startswith(COMPUTING):
            return False
        frame = frame.f_back
    return False


def refuse_in_handler() -> NoReturn:
    """Refuse to wait in the signal handler that runs.

    Raises:
        RuntimeError: the message names the handler.
    """
    number, frame = next(_running(sys._getframe(1)), (0, None))
    _refuse(number, None if frame is None else frame.f_code)


def _refuse(number: int, handler: CodeType | None) -> NoReturn:
    where = "a signal handler"
    if handler is not None:
        place = f"{handler.co_filename}:{handler.co_firstlineno}"
        where = f"the signal handler of {getattr(number, 'name', number)} ({handler.co_name}, {place})"
    raise RuntimeError(
        f"you called wait() in {where} that interrupted its thread in a call of this library, which would wait for itself; "
        f"call rpc_async there and do not wait, or let another thread make the call"
    )


@lru_cache(maxsize=4096)
def _locks(path: str) -> bool:
    return path.startswith(LOCKING)


def _handlers() -> dict[CodeType, int]:
    """Return the code of the handlers that are written in Python, each with the number of its signal."""
    found: dict[CodeType, int] = {}
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # of a functools.partial
        if callable(handler):
            code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
            if code is not None:
                found[code] = number
    return found


def _note_main_thread() -> None:
    global _main
    _main = threading.main_thread().ident


_main = threading.main_thread().ident
os.register_at_fork(after_in_child=_note_main_thread)
