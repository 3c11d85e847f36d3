"""``Future``: a value that arrives later. It knows nothing of messages, agents or tensors.

A future completes exactly once, with a value or an exception. Callbacks run in the thread that completes it, or at
once if it is already complete; no lock is held while they run. ``wait`` blocks a thread, ``await`` an asyncio task.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import logging
import os
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, Protocol, TypeVar, cast

from .errors import AgentClosedError

T = TypeVar("T")
S = TypeVar("S")
Callback = Callable[[], object]

logger = logging.getLogger("telegrad.futures")


class Blocker(Protocol):
    """How a thread of ours blocks: a pool lends its place to another thread meanwhile, an event loop refuses."""

    def block(self, acquire: Callable[[float], bool], timeout: float) -> bool:
        """Run ``acquire(timeout)``, which blocks up to ``timeout`` seconds (-1: for ever), and return its result."""
        ...


class _ThreadRole(threading.local):
    blocker: Blocker | None = None


# Set by whoever owns a thread, read by every ``wait`` in it.
thread_role = _ThreadRole()


_forks = 0  # how often this process's line of ancestors has forked, as far as Python knows


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


class Future(Generic[T]):
    """A value of type ``T`` that arrives later (``torch.futures.Future``)."""

    __slots__ = ("__weakref__", "_callbacks", "_done", "_error", "_forks", "_lock", "_value", "_waiters")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forks = _forks
        self._done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callback] = []
        self._waiters: list[Any] = []

    def done(self) -> bool:
        """Whether it has completed, with a value or an exception."""
        return self._done

    def value(self) -> T:
        """The value, without waiting.

        Raises:
            RuntimeError: it has not completed.
            BaseException: whatever it was completed with.
        """
        if not self._done:
            raise RuntimeError("this future has not completed; call wait(), or check done() first")
        if self._error is not None:
            error = self._error
            try:
                raise error
            finally:
                # The traceback holds this frame: without this, future -> error -> frame -> future is a cycle.
                del self, error
        return cast(T, self._value)

    def exception(self) -> BaseException | None:
        """The exception it completed with, or ``None``; without waiting.

        Raises:
            RuntimeError: it has not completed.
        """
        if not self._done:
            raise RuntimeError("this future has not completed; call wait(), or check done() first")
        return self._error

    def wait(self, timeout: float | None = None) -> T:
        """Block until it completes, and return the value or raise the exception.

        Args:
            timeout: seconds; ``None`` relies on the deadline of whoever completes it (every remote call has one).

        Raises:
            TimeoutError: ``timeout`` seconds went by.
            AgentClosedError: it was made before this process was forked off: whoever completes it is not here.
        """
        if not self._done and not self._block(timeout):
            raise TimeoutError(f"the future did not complete within {timeout:g} s")
        try:
            return self.value()
        finally:
            del self  # as in value()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Run ``callback(self)`` on completion; the returned future holds its result or its exception.

        The callback runs with the context variables (agent, autograd context, profiler) of this call to ``then``.
        """
        target = result = Future[S]()
        context = contextvars.copy_context()

        def run() -> None:
            nonlocal target
            try:
                value = context.run(callback, self)
            except BaseException as error:
                target.set_exception(error)
            else:
                target.set_result(value)
            finally:
                del target  # an error's traceback holds this frame: future -> error -> frame -> future would be a cycle

        self._when_done(run)
        return result

    def add_done_callback(self, callback: Callable[[Future[T]], object]) -> None:
        """Like ``then``, for callbacks whose result nobody needs; an exception in one is logged."""
        context = contextvars.copy_context()
        self._when_done(lambda: context.run(callback, self))

    def set_result(self, value: T) -> None:
        """Complete it with ``value`` and run the callbacks.

        Raises:
            RuntimeError: it has completed already.
        """
        run_callbacks(self.finish(value))

    def set_exception(self, error: BaseException) -> None:
        """Complete it with an exception and run the callbacks.

        Raises:
            TypeError: ``error`` is not an exception.
            RuntimeError: it has completed already.
        """
        if not isinstance(error, BaseException):
            raise TypeError(f"set_exception takes an exception, not {type(error).__name__}")
        run_callbacks(self.finish(error=error))

    def finish(self, value: T | None = None, error: BaseException | None = None) -> list[Callback]:
        """Complete it, wake who waits, and hand back the callbacks for the caller to run where it sees fit."""
        callbacks = self.try_finish(value, error)
        if callbacks is None:
            raise RuntimeError("this future has already completed; a future completes exactly once")
        return callbacks

    def try_finish(self, value: T | None = None, error: BaseException | None = None) -> list[Callback] | None:
        """``finish``; ``None`` if somebody else was first."""
        with self._lock:
            if self._done:
                return None
            self._value, self._error = value, error
            self._done = True
            callbacks, self._callbacks = self._callbacks, []
            waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.release()
        return callbacks

    def __await__(self) -> Generator[Any, None, T]:
        if not self._done:
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()

            def wake() -> None:
                _wake(loop, waiter)

            self._when_done(wake)
            try:
                yield from waiter
            finally:
                self._forget_callback(wake)  # the task may have been cancelled, and this may live long
        return self.value()

    def __repr__(self) -> str:
        state = "pending" if not self._done else f"error={self._error!r}" if self._error else f"value={self._value!r}"
        return f"<Future {state}>"

    def _when_done(self, callback: Callback) -> None:
        if not self._done:
            self._check_process()
        with self._lock:
            if not self._done:
                self._callbacks.append(callback)
                return
        run_callbacks([callback])

    def _check_process(self) -> None:
        if self._forks != _forks:
            raise AgentClosedError(
                "this future was made before this process was forked off, and completes in the parent only; wait for it "
                "there, or start processes with the spawn method"
            )

    def _block(self, timeout: float | None) -> bool:
        self._check_process()
        gate = threading.Lock()
        gate.acquire()
        with self._lock:
            if self._done:
                return True
            self._waiters.append(gate)
        seconds = -1.0 if timeout is None else max(timeout, 0.0)
        blocker = thread_role.blocker
        try:
            opened = _acquire(gate, seconds) if blocker is None else blocker.block(lambda s: _acquire(gate, s), seconds)
        finally:
            self._forget(gate)
        return opened or self._done

    def _forget_callback(self, callback: Callback) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def _forget(self, gate: Any) -> None:
        with self._lock:
            if gate in self._waiters:
                self._waiters.remove(gate)


def collect_all(futures: Iterable[Future[T]]) -> Future[list[Future[T]]]:
    """A future of the list of ``futures``, complete when every one is (``torch.futures.collect_all``)."""
    members = list(futures)
    result: Future[list[Future[T]]] = Future()
    remaining = len(members)
    lock = threading.Lock()

    def one_done() -> None:
        nonlocal remaining
        with lock:
            remaining -= 1
            last = remaining == 0
        if last:
            result.set_result(members)

    if not members:
        result.set_result(members)
    for member in members:
        member._when_done(one_done)
    return result


def wait_all(futures: Iterable[Future[T]]) -> list[T]:
    """Wait until every future has its value and return the values; raises the first error that happens, at once."""
    try:
        futures = list(futures)
        _all_or_first_error(futures).wait()
        return [future.value() for future in futures]
    finally:
        del futures  # as in value()


def _all_or_first_error(futures: list[Future[Any]]) -> Future[Any]:
    everyone = collect_all(futures)
    result: Future[Any] = Future()
    for future in futures:
        future._when_done(lambda future=future: _pass_on_error(future, result))  # type: ignore[misc]
    everyone._when_done(lambda: complete_once(result))
    return result


def _pass_on_error(source: Future[Any], target: Future[Any]) -> None:
    if (error := source.exception()) is not None:
        complete_once(target, error=error)


def complete_once(future: Future[T], value: T | None = None, error: BaseException | None = None) -> None:
    """Complete a future that others may complete too; the first one counts."""
    run_callbacks(future.try_finish(value, error) or [])


def copy_outcome(source: Future[T], target: Future[T]) -> None:
    """Complete ``target`` like ``source``, which is complete; somebody else may be first."""
    error = source.exception()
    complete_once(target, source.value() if error is None else None, error)


def copy_error(error: BaseException) -> BaseException:
    """An equal exception, for one more place that raises it; ``error`` itself if it cannot be copied.

    Raising hangs the frames of whoever waits onto an exception, and with them all they know. One that is kept for others
    must not collect those.
    """
    for make in (copy.copy, _without_constructor):
        try:
            twin = make(error)
            if type(twin) is type(error) and str(twin) == str(error):
                twin.__cause__ = error.__cause__
                return twin
        except BaseException:  # its own methods may raise anything
            continue
    return error


def _without_constructor(error: BaseException) -> BaseException:
    twin = type(error).__new__(type(error), *error.args)
    twin.args = error.args
    twin.__dict__.update(error.__dict__)
    return twin


def run_callbacks(callbacks: list[Callback]) -> None:
    """Run what ``Future.finish`` handed back. One that raises is logged and does not stop the others.

    Raises:
        KeyboardInterrupt: the user interrupted one of them; the others have run.
    """
    interrupt: KeyboardInterrupt | None = None
    for callback in callbacks:
        try:
            callback()
        except KeyboardInterrupt as error:
            interrupt = error
        except BaseException:
            logger.exception("a callback of a future raised; use then() to see such errors in the future it returns")
    if interrupt is not None:
        raise interrupt


def _acquire(gate: Any, seconds: float) -> bool:
    return bool(gate.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)))


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    def complete() -> None:
        if not waiter.done():
            waiter.set_result(None)

    try:
        loop.call_soon_threadsafe(complete)
    except RuntimeError:
        pass  # the loop was closed: nobody awaits any more
