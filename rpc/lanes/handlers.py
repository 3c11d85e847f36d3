"""Exceptions of signal handlers, which Python raises in the middle of whatever the main thread does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import CodeType
from typing import Any


def raised_by_handler(error: BaseException) -> bool:
    """Return whether a signal handler raised an error: it is for the user, and tells nothing of what it interrupted."""
    handlers = set(_handlers())
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def _handlers() -> Iterator[CodeType]:
    """Iterate over the code of the handlers that are written in Python."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # of a functools.partial
        if callable(handler):
            code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
            if code is not None:
                yield code
