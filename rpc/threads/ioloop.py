"""Event loop of the process for I/O and timers, in a thread of its own, alive while any agent or lane uses it.

One, not one per agent: grpc.aio wakes every loop of a process through the same socket, and loops beside one another
steal each other's wake-ups.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

from ...core.futures import interruptible, refuse_in_handler, thread_role
from . import forking

T = TypeVar("T")
# Longer than a lane takes to close: gRPC complains when a server is not stopped, or in the middle of a stream.
GRACE = 5.0


class RefusesToBlock:
    """Blocker of a thread where waiting would stop what is waited for: an event loop's.

    Args:
        reason: message of the error.
    """

    def __init__(
        self,
        reason: str = "you called wait(), rpc_sync() or to_here() on an event loop's own thread, which would wait for itself; "
        "await the future instead, as in await rpc.rpc_async(...) or await rref.to_here_async()",
    ) -> None:
        self._reason = reason

    def block(self, acquire: Callable[[float], bool], timeout: float) -> NoReturn:
        """Refuse."""
        self.refuse()

    def refuse(self) -> NoReturn:
        """Raise the error."""
        raise RuntimeError(self._reason)


class _Reader(RefusesToBlock):
    """Blocker of a thread that reads or writes frames: only a signal handler can wait there."""

    def refuse(self) -> NoReturn:
        refuse_in_handler()


READER = _Reader()


def may_block() -> bool:
    """Return whether this thread may wait: not an event loop's, nor one that refuses (``core.futures.Blocker``)."""
    if thread_role.blocker is not None:
        return not isinstance(thread_role.blocker, RefusesToBlock)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


def call_on_loop(loop: asyncio.AbstractEventLoop, action: Callable[..., object], *args: Any) -> None:
    """Call ``action`` soon on a loop's thread, in an empty context: tasks and timers that it begins would keep the caller's.

    Args:
        loop: the loop.
        action: what to call.
        args: its arguments.

    Raises:
        RuntimeError: the loop is closed.
    """
    loop.call_soon_threadsafe(action, *args, context=contextvars.Context())


def call_if_open(loop: asyncio.AbstractEventLoop, action: Callable[..., object], *args: Any) -> None:
    """Call ``action`` soon, as ``call_on_loop`` does, unless the loop is closed, and what it served with it.

    Args:
        loop, action, args: as for ``call_on_loop``.
    """
    with suppress(RuntimeError):
        call_on_loop(loop, action, *args)


class _Loop(asyncio.SelectorEventLoop):
    """Loop that drops, once it is closed, what gRPC still has for it.

    An operation of gRPC that was given up ends later. Then the loop that reads gRPC's events, another agent's perhaps,
    hands its end on to the loop where it began, and an error would end that turn before the events behind it.
    """

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if self.is_closed() and (getattr(callback, "__module__", None) or "").startswith("grpc."):
            return asyncio.Handle(callback, args, self, context)
        return super().call_soon_threadsafe(callback, *args, context=context)


class LoopThread:
    """asyncio loop that runs in a daemon thread.

    Args:
        name: the thread's name.
        grace: seconds that tasks have to end by themselves when the loop is stopped; then they are cancelled.
    """

    def __init__(self, name: str, grace: float = 0.0) -> None:
        # In an empty context: a loop keeps that of its maker, the first call of a coroutine say, and all that is in it.
        self.loop = contextvars.Context().run(_Loop)
        self._grace = grace
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine to its end, from another thread."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return interruptible(future.result, timeout)
        finally:
            future.cancel()

    def is_current(self) -> bool:
        """Return whether the caller runs on this loop's thread, which must not wait for it."""
        return threading.current_thread() is self._thread

    def stop(self, timeout: float | None = None) -> bool:
        """End the loop's tasks and the loop, and join its thread; False if that took longer than ``timeout`` seconds."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
            if not self.is_current():
                interruptible(self._thread.join, timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        thread_role.blocker, thread_role.inside = RefusesToBlock(), True
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self._drain()
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()

    def _drain(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0))  # what was queued before the end begins, and is cancelled too
        if tasks := asyncio.all_tasks(self.loop):
            self.loop.run_until_complete(asyncio.wait(tasks, timeout=self._grace))
        while tasks := asyncio.all_tasks(self.loop):
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())


_lock = threading.Lock()
_shared: LoopThread | None = None
_users = 0


def acquire_loop() -> LoopThread:
    """Return the shared loop; every call is matched by one of ``release_loop``."""
    global _shared, _users
    with _lock:
        if _shared is None:
            _shared = LoopThread("telegrad-io", GRACE)
        _users += 1
        return _shared


def release_loop() -> None:
    """Give the shared loop back; the last one stops it."""
    global _shared, _users
    with _lock:
        _users -= 1
        if _users:
            return
        last, _shared = _shared, None
    if last is not None:
        last.stop()


def abandon_loop() -> None:
    """In a forked child: the loop's thread does not exist here; forget it without touching it."""
    global _shared, _users, _lock
    _lock = threading.Lock()
    if _shared is not None:
        forking.keep_for_ever([_shared])
        forking.abandon_sockets()
    _shared, _users = None, 0


async def first_of(*coroutines: Any) -> None:
    """Run coroutines side by side until the first ends; the others are cancelled, its exception is raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def within(
    seconds: float, coroutine: Coroutine[Any, Any, T], drop: Callable[[T], object] = lambda result: None
) -> T:
    """Return the result of a coroutine. ``wait_for`` of Python before 3.12 is deaf to a cancellation that comes at its end.

    Args:
        seconds: time after which the coroutine is cancelled.
        coroutine: what to run.
        drop: called with a result that came too late to be returned.

    Raises:
        asyncio.TimeoutError: it took longer.
    """
    task = asyncio.ensure_future(coroutine)
    done: set[Any] = set()
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
    finally:
        if not done:
            task.add_done_callback(partial(_drop_result, drop))
            task.cancel()
            await asyncio.wait([task])
    if not done:
        raise asyncio.TimeoutError
    return task.result()


def _drop_result(drop: Callable[[T], object], task: asyncio.Task[T]) -> None:
    if not task.cancelled() and task.exception() is None:
        drop(task.result())
