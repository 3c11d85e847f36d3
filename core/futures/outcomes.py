"""Functions on the outcomes of futures: wait for several, and pass an outcome from one to another."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

from .attempts import attempt
from .future import Future, complete_once

T = TypeVar("T")


def collect_all(futures: Iterable[Future[T]]) -> Future[list[Future[T]]]:
    """Return a future of the list of ``futures`` that completes when all have (``torch.futures.collect_all``)."""
    members = _checked(futures)
    countdown = _Countdown(len(members), False, members)
    result = countdown.over
    result.driver = _OneAfterAnother(members, weakref.ref(result))
    if not members:
        result.set_result(members)
    for member in members:
        member._when_done(partial(countdown.completed, member))
    return result


def _checked(futures: Iterable[Future[T]]) -> list[Future[T]]:
    if not isinstance(futures, Iterable):
        raise TypeError(f"futures must be a list of futures; you gave {futures!r}")
    members = list(futures)
    if wrong := [each for each in members if not isinstance(each, Future)]:
        raise TypeError(f"futures must be a list of futures; you gave {wrong[0]!r} in it")
    return members


class _OneAfterAnother:
    """Driver of a future that completes when all of others have: it helps one after another.

    So each answer is read by the thread that waits, if it comes while that waits for it, whichever session brings it.

    Args:
        members: the others.
        result: returns the future, whose driver this is; weak, since they would be a cycle.
    """

    def __init__(self, members: list[Future[Any]], result: Callable[[], object]) -> None:
        self._members = members
        self._result = result

    def drive(self, future: Future[Any], until: float) -> None:
        for member in self._members:
            if (driver := member.driver) is None:
                continue
            if future is self._result():
                driver.drive(member, until)
            else:  # made from the result: it may be done earlier, at a deadline of its own
                driver.drive(future, until)
                return


def wait_all(futures: Iterable[Future[T]], timeout: float | None = None) -> list[T]:
    """Wait until all futures have completed and return their values; raise the first error as soon as it happens.

    Raises:
        TimeoutError: ``timeout`` seconds have passed.
    """
    failed = None
    try:
        futures = _checked(futures)
        if len(futures) == 1:
            futures[0].wait(timeout)
        elif futures:
            failed = _wait(futures, len(futures), True, timeout)
        if failed is not None:
            failed.value()
        return [future.value() for future in futures]
    finally:
        del futures, failed  # as in value()


def wait_for_outcomes(futures: Iterable[Future[Any]]) -> None:
    """Wait until all futures have completed, with values or errors; for one after another, since all are waited for."""
    for future in list(futures):
        if not future.done():
            future._block(None)


def wait_for_any(futures: Iterable[Future[Any]], timeout: float | None = None) -> None:
    """Wait until one of several futures has completed, with a value or an error; this thread reads for the first.

    Raises:
        TimeoutError: ``timeout`` seconds have passed.
    """
    members = list(futures)
    if not any(future.done() for future in members):
        _wait(members, 1, False, timeout)


def _wait(futures: list[Future[Any]], count: int, first_error: bool, timeout: float | None) -> Future[Any] | None:
    """Wait for futures. No callbacks are needed, which would run in another thread: the one that ends the countdown wakes this.

    Args:
        futures: at least one.
        count: return when so many have completed.
        first_error: return as soon as one has failed.
        timeout: in seconds.

    Returns:
        The one that failed first, if that is asked for and one did.
    """
    countdown = _Countdown(count, first_error, None)
    over = countdown.over
    # The first counts, or an error, whichever session brings it.
    over.driver = next((future.driver for future in futures if not future.done()), None)
    watchers = [_Watcher(future, countdown) for future in futures]
    try:
        for future, watcher in zip(futures, watchers):
            if not future.add_waiter(watcher):
                watcher.release()
        over.wait(timeout)
    finally:
        for future, watcher in zip(futures, watchers):
            future.remove_waiter(watcher)
    return countdown.failed


class _Countdown(Generic[T]):
    """Number of futures that have not completed.

    Args:
        count: of them.
        first_error: it is over when one has failed.
        value: what ``over`` completes with.

    Attributes:
        over: completes when it is over.
        failed: the future that failed first, if that ended it.
    """

    def __init__(self, count: int, first_error: bool, value: T) -> None:
        self.over: Future[T] = Future()
        self.failed: Future[Any] | None = None
        self._left = count
        self._first_error = first_error
        self._value = value
        self._lock = threading.Lock()

    def completed(self, future: Future[Any]) -> None:
        """Note that a future has completed."""
        with self._lock:
            self._left -= 1
            if self._first_error and self.failed is None and future.exception() is not None:
                self.failed = future
            over = not self._left or self.failed is not None
        if over:
            complete_once(self.over, self._value)


class _Watcher:
    """Waiter of one future, which tells a countdown when that completes."""

    __slots__ = ("_countdown", "_future")

    def __init__(self, future: Future[Any], countdown: _Countdown[Any]) -> None:
        self._future = future
        self._countdown = countdown

    def release(self) -> None:
        """Tell it."""
        self._countdown.completed(self._future)


def copy_outcome(source: Future[T], target: Future[T]) -> None:
    """Complete ``target`` with the outcome of ``source``, which has completed, unless ``target`` has completed already."""
    error = source.exception()
    complete_once(target, source.value() if error is None else None, error)


def copy_error(error: BaseException) -> BaseException:
    """Return an equal exception to raise in another place; ``error`` itself if it cannot be copied.

    Raising adds the frames of the raising thread to an exception, and with them all their variables. An exception that is
    kept for other threads must not collect those.
    """
    for make in (copy.copy, _without_constructor):
        twin, _ = attempt(_equal_copy, make, error)
        if twin is not None:
            twin.__cause__ = error.__cause__
            return twin
    return error


def _equal_copy(make: Callable[[BaseException], BaseException], error: BaseException) -> BaseException | None:
    twin = make(error)
    return twin if type(twin) is type(error) and str(twin) == str(error) else None


def _without_constructor(error: BaseException) -> BaseException:
    twin = type(error).__new__(type(error), *error.args)
    twin.args = error.args
    twin.__dict__.update(error.__dict__)
    return twin
