"""Inbox of a stage: activations and gradients that its neighbours sent for the step that is under way, or the next."""

from __future__ import annotations

import threading
from typing import Any, TypeAlias

from ..core.futures import Future, complete_once
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
        self._failure: BaseException | None = None

    def begin(self, step: int) -> None:
        """Begin a step.

        Raises:
            RuntimeError: another is under way.
        """
        with self._lock:
            if self._step > self._over:
                raise RuntimeError("a step of this stage is under way; run one step of a pipeline at a time")
            self._step, self._failure = step, None
            self._items = {item: future for item, future in self._items.items() if item[0] >= step}

    def end(self) -> None:
        """End the step; what nobody took is dropped."""
        with self._lock:
            self._over = self._step
            self._items = {item: future for item, future in self._items.items() if item[0] > self._over}

    def put(self, step: int, action: Action, value: Any) -> None:
        """Keep a value until it is taken.

        Args:
            step: its step.
            action: the piece of work that needs it.
            value: the value.
        """
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
            self._failure = error
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
            failure = self._failure if step == self._step else None
        if failure is not None:
            complete_once(future, error=failure)
        return future
