"""Interception of operations: tensor classes with a ``__tensor_function__`` of their own, modes, casts and watchers.

The protocol is like that of NumPy's NEP 18. Operations look for interceptors only while ``active`` is not empty, so a
program without interceptors pays for one truth test.
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

# Those of them that are modes and watchers; and types that neither override __tensor_function__ nor contain such values. With
# these two, a program that uses a tensor class in a few places (sparse gradients are one) pays little everywhere else.
entered: list[Any] = []
plain: set[type] = {bool, int, float, complex, str, type(None), np.ndarray, np.dtype}

ArgumentCast = Callable[
    [Callable[..., Any], tuple[Any, ...], dict[str, Any]], "tuple[tuple[Any, ...], dict[str, Any]] | None"
]
"""Function of an operation and its arguments. It returns the arguments to call it with, or ``None`` for the given ones."""

_modes: ContextVar[tuple[TensorFunctionMode, ...]] = ContextVar("telegrad_tensor_function_modes", default=())
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("telegrad_operation_watchers", default=())
_everywhere: tuple[Watcher, ...] = ()  # the watchers of all threads
_watched: ContextVar[Callable[..., Any] | None] = ContextVar("telegrad_operation_watched", default=None)
_cast: ContextVar[ArgumentCast | None] = ContextVar("telegrad_argument_cast", default=None)
_classes_asked: ContextVar[bool] = ContextVar("telegrad_tensor_classes_asked", default=True)


class TensorFunctionMode:
    """A ``with`` block in which each operation of this thread or task calls the mode's ``__tensor_function__`` first.

    Inside that method the mode has no effect, so ``func(*args, **kwargs)`` is the operation itself.
    """

    def __tensor_function__(
        self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Compute the result of an operation; it is called instead of ``func(*args, **kwargs)``.

        Args:
            func: the operation.
            types: the classes among the arguments that override ``__tensor_function__``.
            args: its positional arguments.
            kwargs: its keyword arguments.
        """
        return func(*args, **kwargs)

    def __enter__(self) -> Any:
        _modes.set((*_modes.get(), self))
        _enter(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _leave(self)
        _modes.set(without(_modes.get(), self))


class Watcher:
    """A ``with`` block in which ``watch`` sees each operation that runs in this thread or task.

    It does not see operations that a class or mode took over; it sees those that an operation calls.
    """

    def watch(
        self, run: Callable[[], Any], func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call ``run()``, which is ``func(*args, **kwargs)``, and return its result.

        Args:
            run: calls the operation.
            func: the operation.
            args: its positional arguments.
            kwargs: its keyword arguments.
        """
        return run()

    def __enter__(self) -> Any:
        self.watch_here()
        _enter(self)
        return self

    def watch_here(self) -> None:
        """Let it see the operations of the current context, too, for as long as it is entered."""
        _watchers.set((*_watchers.get(), self))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _leave(self)
        self.stop_here()

    def stop_here(self) -> None:
        """Let it see the operations of the current context no more; others that it watches, it does."""
        _watchers.set(without(_watchers.get(), self))

    def enter_context(self) -> None:
        """Begin to watch, for as long as the present context of ``contextvars``, or a copy of it, lives."""
        _watchers.set((*_watchers.get(), self))
        _enter(weakref.ref(self, _leave))


def watchers() -> tuple[Watcher, ...]:
    """Return the watchers of this thread or task, the innermost last; those of all threads come first."""
    return _everywhere + _watchers.get()


def intercepted() -> bool:
    """Return whether a mode, a watcher or a cast sees the operations of this thread or task; classes do not count."""
    return bool(entered) and bool(_modes.get() or _everywhere or _watchers.get() or _cast.get() is not None)


def watch_everywhere(*these: Watcher) -> None:
    """Let these watchers, and no others, see the operations of all threads; call it from one thread at a time."""
    global _everywhere
    former, _everywhere = _everywhere, these
    for each in these:
        _enter(each)
    for each in former:
        _leave(each)


_CASTING = object()  # in ``entered`` once for each context that has a cast


def set_argument_cast(cast: ArgumentCast | None) -> None:
    """Let ``cast`` change the arguments of the operations of this thread or task; ``None`` ends that.

    Classes and modes that take operations over come first. Inside an operation whose arguments it changed it has no effect.
    """
    if (_cast.get() is None) != (cast is None):
        (_leave if cast is None else _enter)(_CASTING)
    _cast.set(cast)


class PlainTensors:
    """A ``with`` block in which tensor classes take no operation over: operations see only the arrays."""

    __slots__ = ("_token",)

    _token: Token[bool]

    def __enter__(self) -> None:
        self._token = _classes_asked.set(False)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _classes_asked.reset(self._token)


def offer(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Let the innermost mode, or else the classes of the arguments, compute an operation.

    Args:
        func: the operation.
        args: its positional arguments.
        kwargs: its keyword arguments.

    Returns:
        The result; ``NOT_TAKEN`` if the operation must run as usual.

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
    if (cast := _cast.get()) is not None and (changed := cast(func, args, kwargs)) is not None:
        return _run_cast(func, *changed)
    present = watchers()
    return _run_watched(present, func, args, kwargs) if present else NOT_TAKEN


def _enter(one: Any) -> None:
    entered.append(one)
    active.append(one)


def _leave(one: Any) -> None:
    active.remove(one)
    entered.remove(one)


def takes_over(cls: type) -> None:
    """Register a class that overrides ``__tensor_function__``, for as long as it lives."""
    active.append(weakref.ref(cls, active.remove))


def _run_cast(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    token = _cast.set(None)
    try:
        return func(*args, **kwargs)
    finally:
        _cast.reset(token)


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


def without(present: tuple[T, ...], leaving: T) -> tuple[T, ...]:
    """Return ``present`` without its last ``leaving``."""
    for place in reversed(range(len(present))):
        if present[place] is leaving:
            return present[:place] + present[place + 1 :]
    return present  # another thread entered it


def overriding(args: Iterable[Any], kwargs: dict[str, Any]) -> tuple[type, ...]:
    """Return the classes among the arguments that override ``__tensor_function__``, subclasses first."""
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
