"""``record_function``: names a part of a program in the profiles that are recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ..futures import Future
from .events import FunctionEvent
from .recorder import profile
from .scope import profiles

T = TypeVar("T")


class record_function:  # noqa: N801 - PyTorch's name
    """Names a part of a program in the current profiles: a ``with`` block, or a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._entered: list[list[tuple[profile, FunctionEvent]]] = []

    def __enter__(self) -> record_function:
        self._entered.append([(each, each.begin(self.name)) for each in profiles.get()])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for recorder, event in self._entered.pop():
            if not event.is_async:
                recorder.finish(event)

    def __call__(self, function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> T:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapper

    def _call_end_callbacks_on_future(self, fut: Future[T]) -> Future[T]:
        """Let the events of the current block end when ``fut`` completes, and not with the block."""
        if not self._entered or not self._entered[-1]:
            return fut
        entered = self._entered[-1]
        for recorder, event in entered:
            recorder.make_async(event)

        def ended(done: Future[T]) -> T:
            for recorder, event in entered:
                recorder.end_call(event)
            return done.value()

        return fut.then(ended)
