"""Replacements of the threads of an agent: an executor and event loops for coroutines and timers, all on the event queue."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from typing import Any, NoReturn, cast

from ...base.errors import RpcError
from ...rpc.threads.ioloop import RefusesToBlock
from .blocking_thread import FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS, BlockingThread
from .events import EventQueue, Process

QUICK_SECONDS = 0.001  # how long a task waits for a thread, at most
SLOW_SECONDS = 0.5  # the same in a slow process


class Scheduler:
    """Return how long the tasks of one process wait until they run."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.slow = False

    def pause(self) -> float:
        """Return the seconds until the next task runs."""
        return self._rng.random() * (SLOW_SECONDS if self.slow else QUICK_SECONDS)


class RefusesToWait(RefusesToBlock):
    """Blocker of the simulator's thread: all happens on this thread, so it would wait for itself."""

    def block(self, acquire: Callable[[float], bool], timeout: float) -> NoReturn:
        """Raise an error instead of blocking."""
        raise RuntimeError("in the simulator nothing can block; make the function `async def` and await the future")


class SimulatedExecutor:
    """Executor that runs tasks as events, in any order (``rpc.extend.Executor``).

    Args:
        queue: the events.
        process: the process.
        scheduler: decides how long tasks wait.
        threads: those of the process that may block; tasks run in such ones, too. ``None`` if no task blocks.
    """

    def __init__(
        self,
        queue: EventQueue,
        process: Process,
        scheduler: Scheduler,
        threads: dict[BlockingThread, None] | None = None,
    ) -> None:
        self._threads = threads
        self._queue = queue
        self._process = process
        self._scheduler = scheduler
        self._waiting = 0
        self._closed = False

    def submit(self, task: Callable[[], None]) -> None:
        if self._closed:
            raise RpcError(f"the executor of worker {self._process.rank} is closed")
        self._waiting += 1
        self._queue.after(self._scheduler.pause(), self._process, "task", lambda: self._run(task))

    def busy(self) -> int:
        return self._waiting

    def close(self, timeout: float) -> list[str]:
        self._closed = True
        return []

    def _run(self, task: Callable[[], None]) -> None:
        if self._threads is not None:
            thread = BlockingThread(partial(copy_context().run, task))
            self._threads[thread] = None
            self._go_on(self._threads, thread, FIRST_LOOK_SECONDS)
            return
        try:
            task()
        finally:
            self._waiting -= 1

    def _go_on(self, threads: dict[BlockingThread, None], thread: BlockingThread, pause: float) -> None:
        """Let a task run until it blocks, and look again after a while, or note its end."""
        if not thread.finished and thread.go_on():
            pause = FIRST_LOOK_SECONDS if thread.went_on else min(2 * pause, LONGEST_LOOK_SECONDS)
            self._queue.after(pause, self._process, "task", lambda: self._go_on(threads, thread, pause))
            return
        self._waiting -= 1
        threads.pop(thread, None)


class SimulatedLoop:
    """Event loop whose callbacks and timers are events: awaiting, sleeping, gathering and time-outs work as usual.

    It has the methods of ``asyncio.AbstractEventLoop`` that coroutines and an agent's timers need, none for sockets and
    processes.
    """

    def __init__(
        self, queue: EventQueue, process: Process, scheduler: Scheduler, report: Callable[[dict[str, Any]], None]
    ) -> None:
        self._queue = queue
        self._process = process
        self._scheduler = scheduler
        self._report = report
        self._latest = 0.0
        self.as_asyncio = cast(asyncio.AbstractEventLoop, self)
        self.tasks: dict[asyncio.Task[Any], None] = {}  # a dictionary, for its order

    def time(self) -> float:
        return self._queue.now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self.as_asyncio, context)
        pause = self._scheduler.pause() if self._scheduler.slow else 0.0
        self._latest = max(self._latest, self._queue.now + pause)  # in order, as asyncio promises
        self._queue.add(self._latest, self._process, "coroutine", lambda: self._run(handle))
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self.as_asyncio, context)
        self._queue.add(when, self._process, "timer", lambda: self._run(handle))
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._queue.now + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self.as_asyncio)

    def create_task(
        self, coroutine: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        context = context or copy_context()
        task: asyncio.Task[Any] = context.run(asyncio.Task, coroutine, loop=self.as_asyncio, name=name)
        self.tasks[task] = None
        task.add_done_callback(self.tasks.pop)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._report(context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass  # it does nothing when its event comes

    def _run(self, handle: asyncio.Handle) -> None:
        if handle.cancelled():
            return
        asyncio._set_running_loop(self.as_asyncio)
        try:
            handle._run()
        finally:
            asyncio._set_running_loop(None)
