"""Handlers of signals, and finalizers, that interrupt protected code: what they raise, and the calls and waits in them.

Python runs them in the middle of whatever their thread does. If that is protected code (``protection.py``), it may hold a lock:
a call that they begin is sent by another thread (``rpc/calls/caller.py``), and they cannot wait for it. To find that out is to
walk over the frames, which takes a microsecond or two. So it is asked only where a thread sleeps, or where
``thread_role.inside`` says that this thread runs protected code already.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # functions of ``signal`` make enumerations of what these return
import signal
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NoReturn

from .protection import computes, in_finalizer, is_finalizer, protects, protects_module


def raised_by_handler(error: BaseException) -> bool:
    """Return whether a signal handler raised an error: it is for the user, and tells nothing of what it interrupted."""
    return _interrupted_by(error) is not None


def broke_protected(error: BaseException) -> bool:
    """Return whether a signal handler raised an error in protected code: it is unknown what of that was done.

    To be asked by the protected code that catches the error.
    """
    outwards = _interrupted_by(error)
    return outwards is not None and next(filter(None, map(_decides, outwards)), "protected") == "protected"


def interrupts_protected() -> bool:
    """Return whether a signal handler or a finalizer runs in this thread that has interrupted protected code."""
    frame = sys._getframe(1)
    if not (_in_main_thread() or in_finalizer(frame)):  # usually: an answer that is computed calls other workers
        return False
    return _is_nested(frame) and next(_interrupting(frame), None) is not None


def check_may_wait() -> None:
    """Refuse to wait in a handler or finalizer that has interrupted protected code: that may hold a lock which others need.

    Raises:
        RuntimeError: this is one; the message names it.
    """
    frame: FrameType | None = sys._getframe(1)
    if not (_in_main_thread() or in_finalizer(frame)):
        return
    others = False  # as in ``_is_nested``, without a call: a thread asks before it sleeps
    while frame is not None:
        if not protects_module(frame.f_globals.get("__name__") or ""):
            others = True
        elif others:
            for number, each in _interrupting(sys._getframe(1)):
                _refuse(number, each.f_code)
            return
        frame = frame.f_back


def refuse_in_handler() -> NoReturn:
    """Refuse to wait in the signal handler or finalizer that runs.

    Raises:
        RuntimeError: the message names it.
    """
    number, frame = next(_running(sys._getframe(1)), (0, None))
    _refuse(number, None if frame is None else frame.f_code)


def _in_main_thread() -> bool:
    """Return whether this is the thread in which Python calls the handlers of signals."""
    return threading.get_ident() == threading.main_thread().ident


def _interrupting(frame: FrameType | None) -> Iterator[tuple[int, FrameType]]:
    return ((number, each) for number, each in _running(frame) if _is_protected(each.f_back))


def _running(frame: FrameType | None) -> Iterator[tuple[int, FrameType]]:
    """Iterate over the handlers and finalizers that run, from a frame outwards, with the numbers of the signals."""
    handlers = _handlers() if _in_main_thread() else {}
    while frame is not None:
        if (number := handlers.get(frame.f_code)) is not None:
            yield number, frame
        elif is_finalizer(frame):
            yield 0, frame
        frame = frame.f_back


def _is_nested(frame: FrameType | None) -> bool:
    """Return whether other code was called in the middle of protected code: usually not, and to find that out is quick."""
    others = False
    while frame is not None:
        if not protects_module(frame.f_globals.get("__name__") or ""):
            others = True
        elif others:
            return True
        frame = frame.f_back
    return False


def _is_protected(frame: FrameType | None) -> bool:
    while frame is not None and not computes(frame):
        if (protected := protects(frame)) is not None:
            return protected
        frame = frame.f_back
    return False


def _decides(frame: FrameType) -> str:
    protected = protects(frame)
    return "" if protected is None else "protected" if protected else "open"


def _interrupted_by(error: BaseException) -> list[FrameType] | None:
    """Return the frames that a handler interrupted, from the innermost outwards; ``None`` if no handler raised the error.

    Python's own handler is written in C and has no frame: where one is set, the innermost frame of its error was interrupted.
    """
    inwards: list[FrameType] = []
    handlers, traceback = _handlers(), error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return inwards[::-1]
        inwards.append(traceback.tb_frame)
        traceback = traceback.tb_next
    plain = isinstance(error, KeyboardInterrupt) and any(
        each is signal.default_int_handler for _, each in _set_handlers()
    )
    return inwards[::-1] if plain and inwards else None


def _refuse(number: int, code: CodeType | None) -> NoReturn:
    where = "a signal handler"
    if code is not None:
        place = f"{code.co_filename}:{code.co_firstlineno}"
        name = next((each.name for each in signal.Signals if each == number), number)
        what = f"the signal handler of {name}" if number else "a finalizer"
        where = f"{what} ({code.co_name}, {place})"
    raise RuntimeError(
        f"you called wait() in {where} that interrupted its thread in a call of this library, which would wait for itself; "
        f"call rpc_async there and do not wait, or let another thread make the call"
    )


def _handlers() -> dict[CodeType, int]:
    """Return the code of the handlers that are written in Python, each with the number of its signal."""
    found: dict[CodeType, int] = {}
    for number, handler in _set_handlers():
        handler = getattr(handler, "func", handler)  # of a functools.partial
        if callable(handler):
            code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
            if code is not None:
                found[code] = number
    return found


def _set_handlers() -> Iterator[tuple[int, Any]]:
    """Iterate over the signals and their handlers."""
    return ((number, _signal.getsignal(number)) for number in _signal.valid_signals())
