"""Who may take an operation over: tensor classes with a ``__tensor_function__`` of their own, and modes; and who may watch.

In the manner of NumPy's NEP 18. Operations ask only while ``active`` is not empty, so a program without interceptors
pays for one truth test.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar, Token
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

# Classes that override __tensor_function__ (weak references, for as long as the class lives), and modes and watchers that
# some thread has entered.
active: list[Any] = []
NOT_TAKEN = object()

# Those of them that are modes and watchers; and types that never take anything over, nor hold what does. With these, whoever
# uses no more than a class of tensors here or there (sparse gradients are one) has little to pay everywhere else.
entered: list[Any] = []
plain: set[type] = {bool, int, float, complex, str, type(None), np.ndarray, np.dtype}

_modes: ContextVar[tuple[TensorFunctionMode, ...]] = ContextVar("telegrad_tensor_function_modes", default=())
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("telegrad_operation_watchers", default=())
_watched: ContextVar[Callable[..., Any] | None] = ContextVar("telegrad_operation_watched", default=None)
_classes_asked: ContextVar[bool] = ContextVar("telegrad_tensor_classes_asked", default=True)


class TensorFunctionMode:
    """While it is entered, each operation of this thread or task goes to its ``__tensor_function__`` first.

    Inside that method it is out of force, so ``func(*args, **kwargs)`` is the operation itself.
    """

    def __tensor_function__(
        self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Called instead of ``func(*args, **kwargs)``; what it returns is the operation's result."""
        return func(*args, **kwargs)

    def __enter__(self) -> Any:
        _modes.set((*_modes.get(), self))
        _enter(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _leave(self)
        _modes.set(_without(_modes.get(), self))


class Watcher:
    """While it is entered, it sees each operation of this thread or task that really runs: those that nobody took over, and
    those that operations are made of."""

    def watch(
        self, run: Callable[[], Any], func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call ``run()``, which is ``func(*args, **kwargs)``, and return its result."""
        return run()

    def __enter__(self) -> Any:
        _watchers.set((*_watchers.get(), self))
        _enter(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _leave(self)
        _watchers.set(_without(_watchers.get(), self))


class PlainTensors:
    """A ``with`` block in which tensor classes are not asked: operations see only the arrays."""

    __slots__ = ("_token",)

    _token: Token[bool]

    def __enter__(self) -> None:
        self._token = _classes_asked.set(False)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _classes_asked.reset(self._token)


def offer(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Let the innermost mode, or else the classes of the arguments, answer for ``func``; else ``NOT_TAKEN``.

    Raises:
        TypeError: every class returned ``NotImplemented``.
    """
    if not entered and plain.issuperset(map(type, args)) and plain.issuperset(map(type, kwargs.values())):
        return NOT_TAKEN
    if _watched.get() == func:
        return NOT_TAKEN  # a watcher runs it
    modes = _modes.get()
    if modes:
        token = _modes.set(modes[:-1])
        try:
            return modes[-1].__tensor_function__(func, overriding(args, kwargs), args, kwargs)
        finally:
            _modes.reset(token)
    types = overriding(args, kwargs) if _classes_asked.get() else ()
    for cls in types:
        result = cls.__tensor_function__(func, types, args, kwargs)  # type: ignore[attr-defined]
        if result is not NotImplemented:
            return result
    if types:
        names = ", ".join(cls.__name__ for cls in types)
        raise TypeError(f"{func.__name__}() is not implemented for {names}: each __tensor_function__ declined")
    watchers = _watchers.get()
    return _run_watched(watchers, func, args, kwargs) if watchers else NOT_TAKEN


def _enter(one: Any) -> None:
    entered.append(one)
    active.append(one)


def _leave(one: Any) -> None:
    active.remove(one)
    entered.remove(one)


def takes_over(cls: type) -> None:
    """Let ``cls`` answer for operations on its instances, until it is gone."""
    active.append(weakref.ref(cls, active.remove))


def _run_watched(
    watchers: tuple[Watcher, ...], func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    run = partial(func, *args, **kwargs)
    for watcher in reversed(watchers):
        run = partial(watcher.watch, run, func, args, kwargs)
    token = _watched.set(func)
    try:
        return run()
    finally:
        _watched.reset(token)


def _without(present: tuple[T, ...], leaving: T) -> tuple[T, ...]:
    # Not always the last: ``set_detect_anomaly`` may be called anywhere.
    for place in reversed(range(len(present))):
        if present[place] is leaving:
            return present[:place] + present[place + 1 :]
    return present  # another thread entered it


def overriding(args: Iterable[Any], kwargs: dict[str, Any]) -> tuple[type, ...]:
    """The classes among the arguments that have a ``__tensor_function__`` of their own, subclasses first."""
    found: list[type] = []
    for cls in _types((*args, *kwargs.values())):
        if getattr(cls, "_takes_over", False) is True and cls not in found:
            place = next((index for index, other in enumerate(found) if issubclass(cls, other)), len(found))
            found.insert(place, cls)
    return tuple(found)


def _types(values: Iterable[Any]) -> Iterator[type]:
    for value in values:
        if type(value) in (tuple, list):
            yield from _types(value)
        else:
            yield type(value)
