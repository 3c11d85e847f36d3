"""Functions on the outcomes of futures: wait for several, and pass an outcome from one to another."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Iterable
from typing import Any, TypeVar

from .future import Future, run_callbacks

T = TypeVar("T")


def collect_all(futures: Iterable[Future[T]]) -> Future[list[Future[T]]]:
    """Return a future of the list of ``futures`` that completes when all have (``torch.futures.collect_all``)."""
    members = _checked(futures)
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

    result.driver = _OneAfterAnother(members, result)
    if not members:
        result.set_result(members)
    for member in members:
        member._when_done(one_done)
    return result


def _checked(futures: Iterable[Future[T]]) -> list[Future[T]]:
    members = list(futures)
    if wrong := [each for each in members if not isinstance(each, Future)]:
        raise TypeError(f"futures must be a list of futures; you gave {wrong[0]!r} in it")
    return members


class _OneAfterAnother:
    """Driver of a future that completes when all of others have: it helps one after another.

    So each answer is read by the thread that waits, if it comes while that waits for it, whichever connection brings it.

    Args:
        members: the others.
        result: the future.
    """

    def __init__(self, members: list[Future[Any]], result: Future[Any]) -> None:
        self._members = members
        self._result = weakref.ref(result)  # they would be a cycle

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
    try:
        futures = _checked(futures)
        (futures[0] if len(futures) == 1 else _all_or_first_error(futures)).wait(timeout)
        return [future.value() for future in futures]
    finally:
        del futures  # as in value()


def _all_or_first_error(futures: list[Future[Any]]) -> Future[Any]:
    everyone = collect_all(futures)
    result: Future[Any] = Future()
    result.driver = next((future.driver for future in futures if not future.done()), None)
    for future in futures:
        future._when_done(lambda future=future: _pass_on_error(future, result))  # type: ignore[misc]
    everyone._when_done(lambda: complete_once(result))
    return result


def _pass_on_error(source: Future[Any], target: Future[Any]) -> None:
    if (error := source.exception()) is not None:
        complete_once(target, error=error)


def complete_once(future: Future[T], value: T | None = None, error: BaseException | None = None) -> None:
    """Complete a future with a value or an error, unless it has completed already.

    Args:
        future: the future.
        value: its value, if there is no error.
        error: its exception.
    """
    run_callbacks(future.try_finish(value, error) or [])


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
