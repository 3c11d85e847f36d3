"""Backward passes inside backward passes: each stands on the stack of the one before, and Python's stack has an end.

So from some depth on a pass runs in a thread of its own, whose stack is empty, while the one that it is inside of waits for it.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

# About ten Python frames lie between one pass and the next; Python allows a thread a thousand.
DEEPEST = 40


class _Depth(threading.local):
    passes = 0


_depth = _Depth()


def on_some_stack(work: Callable[[], None]) -> None:
    """``work()``, in this thread unless too many calls of it lie on the stack; its exceptions are raised here."""
    if _depth.passes >= DEEPEST:
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
            context.run(on_some_stack, work)
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
