"""Inbox of a stage: activations and gradients that its neighbours sent for the step that is under way, or the next."""

from __future__ import annotations

import threading
from typing import Any, TypeAlias

from ..core.futures import Driver, Future, complete_once
from .schedules import Action

Item: TypeAlias = "tuple[int, Action]"  # number of the step, and what it is for


class Inbox:
    """Values by step and action; each is taken once. Any thread.

    Items of steps that are over are dropped, so that what a failed step left does not stay.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._step = 0  # the latest that began
        self._over = 0  # the latest that is over
        self._items: dict[Item, Future[Any]] = {}
        self._failure: tuple[int, BaseException] | None = None  # of a step, which may not have begun
        self._drivers: dict[str, Driver | None] = {}  # by kind of action: they read where the latest value came from

    def begin(self, step: int) -> None:
        """Begin a step.

        Raises:
            RuntimeError: another is under way.
        """
        with self._lock:
            if self._step > self._over:
                raise RuntimeError("a step of this stage is under way; run one step of a pipeline at a time")
            self._step = step
            self._items = {item: future for item, future in self._items.items() if item[0] >= step}

    def end(self) -> None:
        """End the step; what nobody took is dropped."""
        with self._lock:
            self._over = self._step
            self._items = {item: future for item, future in self._items.items() if item[0] > self._over}

    def put(self, step: int, action: Action, value: Any, driver: Driver | None = None) -> None:
        """Keep a value until it is taken.

        Args:
            step: its step.
            action: the piece of work that needs it.
            value: the value.
            driver: helps a thread that waits for the next value of that kind: it reads where this one came from.
        """
        self._drivers[action.kind] = driver
        if (future := self._item(step, action)) is not None:
            complete_once(future, value)

    def take(self, step: int, action: Action, seconds: float) -> Any:
        """Wait for a value, and return it.

        Args:
            step: its step.
            action: the piece of work that needs it.
            seconds: how long to wait at most.

        Raises:
            TimeoutError: it did not come in time.
            BaseException: the step was given up, with this error.
        """
        future = self._item(step, action)
        if future is None:
            raise RuntimeError(f"step {step} of this stage is over")
        try:
            if not future.done():
                future.driver = self._drivers.get(action.kind)
            return future.wait(seconds)
        finally:
            with self._lock:
                self._items.pop((step, action), None)

    def abort(self, step: int, error: BaseException) -> None:
        """Give a step up: whoever waits for one of its values gets the error.

        Args:
            step: the step.
            error: why.
        """
        with self._lock:
            if step <= self._over:
                return
            self._failure = step, error
            failed = [future for (number, _), future in self._items.items() if number == step]
        for future in failed:
            complete_once(future, error=error)

    def __len__(self) -> int:
        """Return the number of values that are here or waited for."""
        return len(self._items)

    def _item(self, step: int, action: Action) -> Future[Any] | None:
        with self._lock:
            if step <= self._over:
                return None
            future = self._items.setdefault((step, action), Future())
            failure = self._failure
        if failure is not None and failure[0] == step:
            complete_once(future, error=failure[1])
        return future
