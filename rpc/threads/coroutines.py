"""Coroutines of one agent: calls of ``async def`` functions run on an event loop, in a thread made for the first of them."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from ...base.errors import AgentClosedError
from ...core.futures import Future, complete_once
from .ioloop import LoopThread


class Coroutines:
    """Runner of coroutines.

    Args:
        name: name of the thread.
        loop: an event loop that its owner stops, such as a simulator; ``None`` makes a thread with an event loop.
    """

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._name = name
        self._loop = loop
        self._thread: LoopThread | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # a loop itself only has weak references to them
        self._lock = threading.Lock()
        self._closed = False

    def run(self, coroutine: Coroutine[Any, Any, Any], context: contextvars.Context) -> Future[Any]:
        """Run a coroutine in a context; the future holds its outcome, and its ``cancel`` cancels the coroutine.

        Raises:
            AgentClosedError: the agent is closed.
        """
        outcome: Future[Any] = Future()
        with self._lock:
            # Queued under the lock, so that ``close``, which stops the loop, also ends every queued coroutine.
            if not self._closed:
                self._running_loop().call_soon_threadsafe(self._begin, coroutine, outcome, context=context)
                return outcome
        coroutine.close()
        raise AgentClosedError(f"{self._name!r} runs no more coroutines: the agent is closed")

    def close(self, timeout: float) -> list[str]:
        """Cancel all coroutines; return the name of the thread if they did not end within ``timeout`` seconds."""
        with self._lock:
            self._closed = True
            thread = self._thread
        return [] if thread is None or thread.stop(timeout) else [self._name]

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        # lock held
        if self._loop is None:
            self._thread = LoopThread(self._name)
            self._loop = self._thread.loop
        return self._loop

    def _begin(self, coroutine: Coroutine[Any, Any, Any], outcome: Future[Any]) -> None:
        if outcome.done():  # it was cancelled meanwhile
            coroutine.close()
            return
        task = asyncio.get_running_loop().create_task(_complete(coroutine, outcome))
        outcome.canceller = _TaskCanceller(task)
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._end(task, coroutine, outcome))

    def _end(self, task: asyncio.Task[None], coroutine: Coroutine[Any, Any, Any], outcome: Future[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():  # before its first step
            coroutine.close()
            complete_once(outcome, error=asyncio.CancelledError())


class _TaskCanceller:
    """Cancels the task of a coroutine; its future completes when the task ends."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self, future: Future[Any]) -> bool:
        with suppress(RuntimeError):  # the loop was closed, and has ended the task
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        return not future.done()


async def _complete(coroutine: Coroutine[Any, Any, Any], outcome: Future[Any]) -> None:
    try:
        value = await coroutine
    except BaseException as error:
        complete_once(outcome, error=error)
    else:
        complete_once(outcome, value)
    finally:
        # An error's traceback holds this frame: outcome -> error -> frame -> outcome would be a cycle.
        del coroutine, outcome


RUNNER_CODE = _complete.__code__  # the outermost frame of a coroutine, which has its outcome
