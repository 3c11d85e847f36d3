"""Places of threads in user code, for messages about those that do not end."""

from __future__ import annotations

import sys
import threading

PACKAGE = __name__.partition(".rpc.")[0]


def place_of(thread: threading.Thread) -> str:
    """Return the user's function that a thread runs, with its line; the thread's name, if it runs none in Python."""
    frame, called = sys._current_frames().get(thread.ident or 0), None
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module != "threading" and (
            not module.startswith(f"{PACKAGE}.") or module.startswith(f"{PACKAGE}.examples.")
        ):
            called = frame  # the outermost is the one that was called
        frame = frame.f_back
    return (
        thread.name if called is None else f"{called.f_code.co_name}() at {called.f_code.co_filename}:{called.f_lineno}"
    )
