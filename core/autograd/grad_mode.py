"""Grad mode: whether operations are recorded. A context variable, so each thread and asyncio task has its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_enabled: ContextVar[bool] = ContextVar("telegrad_grad_enabled", default=True)

# Bound once: every operation calls it, and this form needs no Python frame.
is_grad_enabled = _enabled.get
set_mode = _enabled.set  # for the engine, which restores the former one


class GradMode:
    """Sets the mode inside a ``with`` block or a decorated function, and restores the former one."""

    __slots__ = ("_former", "_mode")

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._former: list[bool] = []

    def __enter__(self) -> None:
        self._former.append(_enabled.get())
        _enabled.set(self._mode)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _enabled.set(self._former.pop())

    def __call__(self, function: F) -> F:
        """Decorate ``function``, a coroutine or generator function too, to run in this mode."""
        mode = self._mode
        if inspect.isgeneratorfunction(function):
            return cast(F, _generator(function, mode))
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def later(*args: Any, **kwargs: Any) -> Any:
                with GradMode(mode):
                    return await function(*args, **kwargs)

            return cast(F, later)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            # A fresh object for each call: the decorated function may run in several threads.
            with GradMode(mode):
                return function(*args, **kwargs)

        return cast(F, wrapper)


class PlainMode(GradMode):
    """A mode without arguments, which can decorate without parentheses."""

    __slots__ = ()

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


class no_grad(PlainMode):  # noqa: N801 - PyTorch's name
    """``with no_grad():`` or ``@no_grad``: results inside require no gradient and record no graph."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(PlainMode):  # noqa: N801 - PyTorch's name
    """``with enable_grad():`` or ``@enable_grad``: record again, inside a ``no_grad`` block."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(GradMode):  # noqa: N801 - PyTorch's name
    """Sets the mode at once, as a function; as a context manager it also restores the former one."""

    __slots__ = ()

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._former.append(_enabled.get())
        _enabled.set(self._mode)

    def __enter__(self) -> None:
        _enabled.set(self._mode)

    def __call__(self, function: F) -> F:
        """Decorate ``function`` to run in this mode."""
        # As a decorator it must not change the mode of the place where the function is defined.
        _enabled.set(self._former.pop())
        return super().__call__(function)


class inference_mode(GradMode):  # noqa: N801 - PyTorch's name
    """``with inference_mode():`` is ``no_grad``; here there is nothing more to save, and results can be used anywhere."""

    __slots__ = ()

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)

    def __enter__(self) -> None:
        super().__enter__()
        _inference.set((*_inference.get(), not self._mode))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _inference.set(_inference.get()[:-1])
        super().__exit__(kind, error, tb)


_inference: ContextVar[tuple[bool, ...]] = ContextVar("telegrad_inference_modes", default=())


def is_inference_mode_enabled() -> bool:
    """Return whether an ``inference_mode`` block is being run."""
    modes = _inference.get()
    return bool(modes) and modes[-1]


def _generator(function: Callable[..., Any], mode: bool) -> Callable[..., Any]:
    """Return a generator function whose body runs in the mode; the code between its values does not."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        sent: Any = None
        try:
            while True:
                with GradMode(mode):
                    value = generator.send(sent)
                sent = yield value
        except StopIteration as end:
            return end.value
        finally:
            generator.close()

    return wrapper
