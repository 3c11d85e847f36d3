"""``Future``: a value that arrives later.

A future completes exactly once, with a value or an exception. Callbacks run in the thread that completes it, or at
once if it is already complete; no lock is held while they run. ``wait`` blocks a thread, ``await`` an asyncio task.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import os
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from ...base.errors import AgentClosedError, RpcCancelledError, as_runtime_error
from .attempts import attempt
from .blocking import Canceller, Driver, Waiter, block, check_wait_seconds, thread_role
from .program_clock import program_clock
from .reentry import check_may_wait

T = TypeVar("T")
S = TypeVar("S")
Callback = Callable[[], object]
NOBODY: Any = ()  # in the place of a list: most futures have no callbacks, and no thread that sleeps

logger = logging.getLogger("telegrad.futures")

_forks = 0  # number of forks between the first Python process and this one


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


class Future(Generic[T]):
    """A value of type ``T`` that arrives later (``torch.futures.Future``).

    Attributes:
        driver: helps it to complete while a thread waits for it; ``None`` if nothing can.
        canceller: ends what computes the value; ``None`` if nothing can.
        call: number of the worker that computes it for a call, and the id of the call; ``None`` if it is not that of a call.
    """

    # Makes the proxy of ``remote``; set where agents are put together, because references are of a layer above.
    proxy_of_outcome: ClassVar[Callable[[Future[Any], float], Any] | None] = None

    __slots__ = (
        "__weakref__",
        "_callbacks",
        "_done",
        "_error",
        "_forks",
        "_lock",
        "_value",
        "_waiters",
        "call",
        "canceller",
        "driver",
    )

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forks = _forks
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callback] = NOBODY
        self._waiters: list[Any] = NOBODY
        self.driver: Driver | None = None
        self.canceller: Canceller | None = None
        self.call: tuple[int, int] | None = None

    def done(self) -> bool:
        """Return whether the future has completed, with a value or an exception."""
        return self._done

    def value(self) -> T:
        """Return the value, without waiting.

        Raises:
            RuntimeError: the future has not completed.
            BaseException: the exception that it was completed with.
        """
        if not self._done:
            raise RuntimeError("this future has not completed; call wait(), or check done() first")
        if self._error is not None:
            self._look()
            error = self._error
            try:
                raise error
            finally:
                # The traceback refers to this frame: without this, future -> error -> frame -> future is a cycle.
                del self, error
        value: T = self._value
        return value

    def exception(self) -> BaseException | None:
        """Return the exception that it completed with, or ``None``; without waiting.

        Raises:
            RuntimeError: the future has not completed.
        """
        if not self._done:
            raise RuntimeError("this future has not completed; call wait(), or check done() first")
        if self._error is not None:
            self._look()
        return self._error

    def known(self) -> tuple[T] | None:
        """Return the value in a tuple, if the future has completed with one; else ``None``."""
        return (self._value,) if self._done and self._error is None else None

    def remote(self, timeout: float = -1.0) -> Any:
        """Return a proxy: ``future.remote().method(...)`` calls a method of the result at its callee, and returns an ``RRef``.

        The future is that of a remote call. Its result may not exist yet: the method waits for it at the callee.

        Args:
            timeout: seconds, as in ``rpc.remote``.

        Raises:
            TypeError: the future is not that of one remote call.
        """
        make = Future.proxy_of_outcome
        if self.call is None or make is None:
            raise TypeError(
                "only the future of a remote call has remote(); for a value of this worker use rpc.RRef(value)"
            )
        return make(self, timeout)

    def wait(self, timeout: float | None = None) -> T:
        """Block until the future completes, and return the value or raise the exception.

        Args:
            timeout: in seconds; ``None`` for no limit here (every remote call has a deadline of its own).

        Raises:
            TimeoutError: ``timeout`` seconds have passed.
            ArgumentTypeError, ArgumentValueError: ``timeout`` is no number, or nan.
            AgentClosedError: the future was made before this process was forked, and completes in the parent.
        """
        if timeout is not None:
            check_wait_seconds(timeout)
        if not (self._done or self._block(timeout)):
            raise TimeoutError(f"the future did not complete within {timeout:g} s")
        if self._error is None:
            value: T = self._value
            return value
        try:
            return self.value()
        finally:
            del self  # as in value()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Run ``callback(self)`` on completion; return a future of its result or exception, which is a ``RuntimeError``, too.

        The callback runs with the context variables (agent, autograd context, profiler) of this call to ``then``.
        """
        _check_callback("then", callback)
        target = result = Future[S]()
        result.driver = self.driver
        context = contextvars.copy_context()

        def run() -> None:
            nonlocal target
            value, error = attempt(context.run, callback, self)
            try:
                callbacks = target.try_finish(*((value, None) if error is None else self._raised(error)))
            finally:
                # An error's traceback refers to this frame: else future -> error -> frame -> future is a cycle.
                del target, error
            run_callbacks(callbacks or [])  # none if it was cancelled

        self._when_done(run)
        try:
            return result
        finally:
            del result  # as in run(), which may have run here

    def add_done_callback(self, callback: Callable[[Future[T]], object]) -> None:
        """Run ``callback(self)`` on completion; its result is not used, and an exception in it is logged.

        Raises:
            TypeError: ``callback`` cannot be called.
        """
        _check_callback("add_done_callback", callback)
        context = contextvars.copy_context()
        self._when_done(lambda: context.run(callback, self))

    def set_result(self, value: T) -> None:
        """Complete the future with ``value`` and run the callbacks.

        Raises:
            RuntimeError: the future has completed already.
        """
        run_callbacks(self.finish(value))

    def set_exception(self, error: BaseException) -> None:
        """Complete the future with an exception and run the callbacks.

        Raises:
            TypeError: ``error`` is not an exception.
            RuntimeError: the future has completed already.
        """
        if not isinstance(error, BaseException):
            raise TypeError(f"set_exception takes an exception, not {type(error).__name__}")
        run_callbacks(self.finish(error=error))

    def cancel(self) -> bool:
        """Give the value up: the future fails with ``RpcCancelledError``, unless it has completed. Any thread.

        A remote call that has not started does not run. One that runs sees ``rpc.current_call().cancelled``, and a coroutine
        is cancelled at its next ``await``. A task that is cancelled while it awaits a remote call cancels the call.

        Returns:
            False if the future has completed already.
        """
        if (canceller := self.canceller) is not None:
            outer, thread_role.inside = thread_role.inside, True
            try:
                return canceller.cancel(self)
            finally:
                thread_role.inside = outer
        callbacks = self.try_finish(error=RpcCancelledError("the future was cancelled"))
        run_callbacks(callbacks or [])
        return callbacks is not None

    def finish(self, value: T | None = None, error: BaseException | None = None) -> list[Callback]:
        """Complete the future, wake the waiting threads, and return the callbacks, which the caller must run.

        Raises:
            RuntimeError: the future has completed already.
        """
        callbacks = self.try_finish(value, error)
        if callbacks is None:
            raise RuntimeError("this future has already completed; a future completes exactly once")
        return callbacks

    def try_finish(self, value: T | None = None, error: BaseException | None = None) -> list[Callback] | None:
        """Do the same as ``finish``; return ``None`` if the future has completed already.

        With an error, ``value`` may be a watch: its ``looked_at`` is called when the error is looked at.
        """
        woken = False
        try:
            with self._lock:
                if self._done:
                    return None
                self._value, self._error = value, error
                self._done = True
                self.driver = self.canceller = None  # they hold a session, an agent
                callbacks, self._callbacks = self._callbacks, NOBODY
            for waiter in self._waiters:
                waiter.release()
            woken = True
            self._waiters = NOBODY
            return callbacks
        finally:
            if not woken and self._done:  # a signal handler has raised something, and the others would wait for ever
                for waiter in self._waiters:
                    waiter.release()

    def __await__(self) -> Generator[Any, None, T]:
        if not self._done:
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()

            def wake() -> None:
                _wake(loop, waiter)

            self._when_done(wake)
            try:
                yield from waiter
            except asyncio.CancelledError:
                if self.canceller is not None:
                    self.cancel()
                raise
            finally:
                self._forget_callback(wake)  # a cancelled task must not stay referenced
        return self.value()

    def __repr__(self) -> str:
        state = "pending" if not self._done else f"error={self._error!r}" if self._error else f"value={self._value!r}"
        return f"<Future {state}>"

    def _look(self) -> None:
        """End the watch of the error, which is in the place of the value, if there is one."""
        if self._value is not None:
            self._value.looked_at()

    def _raised(self, error: BaseException) -> tuple[Any, BaseException]:
        """Return the watch and the error of the future of a callback that raised an error."""
        if not isinstance(error, Exception):
            return None, error
        return self._passed_on(error), error if error is self._error else as_runtime_error(error)

    def _passed_on(self, error: BaseException) -> Any:
        """Return the watch for the future of a callback that raised this future's error; ``None`` if nothing watches it."""
        return self._value.passed_on() if error is self._error and self._value is not None else None

    def _when_done(self, callback: Callback) -> None:
        if not self._done:
            self._check_process()
        with self._lock:
            if not self._done:
                self._callbacks = self._callbacks or []
                self._callbacks.append(callback)
                return
        run_callbacks([callback])

    def _check_process(self) -> None:
        if self._forks != _forks:
            raise AgentClosedError(
                "this future was made before this process was forked, and completes in the parent only; wait for it "
                "there, or start processes with the spawn method"
            )

    def add_waiter(self, waiter: Any) -> bool:
        """Have ``waiter.release()`` called on completion, before the callbacks; return False if it has completed already."""
        with self._lock:
            if not self._done:
                self._waiters = self._waiters or []
                self._waiters.append(waiter)
            return not self._done

    def leads_to(self) -> Iterable[object]:
        """Return futures and requests that complete when it does, beside those of its callbacks; for observers."""
        return ()

    def remove_waiter(self, waiter: Any) -> None:
        """Forget a waiter, if it is still there."""
        with self._lock:
            if not self._done and waiter in self._waiters:  # of a future that has completed another thread wakes them
                self._waiters.remove(waiter)

    def _block(self, timeout: float | None) -> bool:
        if self._forks != _forks:
            self._check_process()
        role = thread_role
        outer, role.inside = role.inside, True
        try:
            if outer:
                check_may_wait()
            return self._sleep_until(math.inf) if timeout is None else self._sleep_for(timeout)
        finally:
            role.inside = outer

    def _sleep_for(self, timeout: float) -> bool:
        ends = program_clock.now() + max(timeout, 0.0)
        while not self._sleep_until(program_clock.real(ends)):
            if program_clock.now() >= ends:
                return False
        return True

    def _sleep_until(self, until: float) -> bool:
        if (driver := self.driver) is not None:
            driver.drive(self, until)
            if self._done:
                return True
        waiter = Waiter()
        if not self.add_waiter(waiter):
            return True
        try:
            return block(waiter.sleep, until) or self._done
        finally:
            self.remove_waiter(waiter)

    def _forget_callback(self, callback: Callback) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


WAIT_CODE = Future._block.__code__  # a thread that waits has a frame of it, whose ``self`` is the future


def _check_callback(where: str, callback: object) -> None:
    if not callable(callback):
        raise TypeError(f"{where} takes a function of the future; you gave {callback!r}")


def run_callbacks(callbacks: list[Callback]) -> None:
    """Run the callbacks that ``Future.finish`` returned. An exception is logged and does not stop the others.

    Each is taken out of the list before it runs: none runs twice, whoever calls this again with the same list.

    Raises:
        KeyboardInterrupt: the user interrupted a callback; the others have run.
    """
    interrupt: KeyboardInterrupt | None = None
    while callbacks:
        try:
            callbacks.pop(0)()
        except KeyboardInterrupt as error:
            interrupt = error
        except BaseException:
            logger.exception("a callback of a future raised; use then() to see such errors in the future it returns")
    if interrupt is not None:
        raise interrupt


def complete_once(future: Future[T], value: T | None = None, error: BaseException | None = None) -> None:
    """Complete a future with a value or an error, unless it has completed already.

    Args:
        future: the future.
        value: its value, if there is no error.
        error: its exception.
    """
    run_callbacks(future.try_finish(value, error) or [])


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    def complete() -> None:
        if not waiter.done():
            waiter.set_result(None)

    try:
        loop.call_soon_threadsafe(complete)
    except RuntimeError:
        pass  # the loop was closed: no task waits any more
