"""Backward passes inside backward passes. Each adds about ten frames to Python's stack, which is limited.

From a certain depth on, a pass runs in a new thread with an empty stack, while the enclosing pass waits for it.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

# Python allows a thread about a thousand frames.
MAX_DEPTH = 40


class _Depth(threading.local):
    passes = 0


_depth = _Depth()


def run_reentrant(work: Callable[[], None]) -> None:
    """Call ``work()``, in a new thread if too many calls are on this one's stack; its exceptions are raised here."""
    if _depth.passes >= MAX_DEPTH:
        _on_new_stack(work)
        return
    _depth.passes += 1
    try:
        work()
    finally:
        _depth.passes -= 1


def _on_new_stack(work: Callable[[], None]) -> None:
    context, errors = contextvars.copy_context(), []

    def run() -> None:
        try:
            context.run(run_reentrant, work)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="telegrad backward")
    thread.start()
    thread.join()
    if errors:
        try:
            raise errors.pop()
        finally:
            del errors
