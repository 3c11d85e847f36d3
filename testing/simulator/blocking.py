"""``blocking``: code that blocks its thread, as a coroutine of a simulated worker.

It runs in a thread of its own, which goes on only while the simulator's thread waits for it. So one of them runs at a time, and
a run can be repeated. Where the code would block, the simulator goes on, and looks again after a while.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.futures import Future, thread_role

if TYPE_CHECKING:
    from .worker import Worker

FIRST_LOOK_SECONDS = 0.01
LONGEST_LOOK_SECONDS = 1.0
T = TypeVar("T")


class ThreadEnded(BaseException):
    """Raised where the code blocks, when its process has ended."""


class BlockingThread:
    """Thread that runs in turns with the simulator's. It is its own blocker.

    Args:
        run: what it runs.

    Attributes:
        went_on: whether it did when it was last to go on.
    """

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._ended = self._finished = self.went_on = False
        self._acquire: Callable[[float], bool] | None = None
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()

    def go_on(self) -> bool:
        """Let it run until it blocks, or to its end; return whether there is more to do."""
        self.went_on = self._acquire is None or self._ended or self._acquire(0.0)
        if self.went_on:
            self._acquire = None
            self._mine.release()
            self._theirs.acquire()
        return not self._finished

    def end(self) -> None:
        """Raise ``ThreadEnded`` where it blocks."""
        self._ended = True
        while not self._finished:
            self.go_on()
        self._thread.join()

    def block(self, acquire: Callable[[float], bool], timeout: float) -> bool:
        """Let the simulator go on until ``acquire`` succeeds (``Blocker.block``); time-outs are those of calls."""
        if not self._ended:
            self._acquire = acquire
            self._theirs.release()
            self._mine.acquire()
        if self._ended:
            raise ThreadEnded
        return True

    def _main(self) -> None:
        thread_role.blocker = self
        self._mine.acquire()
        try:
            self._run()
        finally:
            self._finished = True
            self._theirs.release()


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
