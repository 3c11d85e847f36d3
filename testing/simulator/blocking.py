"""``blocking``: code that blocks its thread, as a coroutine of a simulated worker.

It runs in a thread of its own, which goes on only while the simulator's thread waits for it. So one of them runs at a time, and
a run can be repeated. Where the code would block, the simulator goes on, and looks again after a while.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.futures import Future
from .blocking_thread import FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS, BlockingThread

if TYPE_CHECKING:
    from .worker import Worker

T = TypeVar("T")


async def blocking(worker: Worker, function: Callable[..., T], *args: Any) -> T:
    """Return what a function returns that may block, in the context of this coroutine.

    Args:
        worker: the worker; its end ends the thread.
        function: the function.
        args: its arguments.
    """
    done: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(function, *args))
        except BaseException as error:
            done.set_exception(error)

    thread = BlockingThread(run)
    worker.threads[thread] = None
    pause = FIRST_LOOK_SECONDS
    try:
        while thread.go_on():
            pause = FIRST_LOOK_SECONDS if thread.went_on else min(2 * pause, LONGEST_LOOK_SECONDS)
            await asyncio.sleep(pause)
    finally:
        thread.end()
        del worker.threads[thread]
    return done.value()
