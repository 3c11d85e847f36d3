"""``operation``: what makes a function an operation that users call.

It can be taken over (``interception``), it is known by name (``OPERATIONS``), and its errors say which operation it was
and what it was given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..interception import NOT_TAKEN, active, offer
from ..tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")

# Every operation by name, for listings and for checks that none is forgotten.
OPERATIONS: dict[str, Callable[..., Any]] = {}


def operation(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function on tensors that is written out by hand; ``factories`` make the others."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if active and (taken := offer(call, args, kwargs)) is not NOT_TAKEN:
            return taken
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            explain(error, name, args, kwargs)
            raise

    OPERATIONS[name] = call
    return call


def explain(error: Exception, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Make the message of ``error`` name the operation and what it was called with, unless it does already.

    Raises:
        TypeError: instead of an ``AttributeError``, when an argument is no tensor.
    """
    text = str(error)
    if isinstance(error, AttributeError):
        if hasattr(Tensor, str(error.name)) and not isinstance(error.obj, Tensor):
            raise TypeError(f"{name}() takes tensors, and you called {called(name, args, kwargs)}") from None
        return
    if not getattr(error, "names_operation", False) and not text.startswith(f"{name}("):
        error.args = (f"{name}(): {text}; you called {called(name, args, kwargs)}",)
    error.names_operation = True  # type: ignore[attr-defined]


def called(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The call as text, with tensors as dtype and shape: ``add(float32 (2, 3), float32 (4,))``."""
    parts = [_argument(value) for value in args]
    parts += [f"{key}={_argument(value)}" for key, value in kwargs.items() if value is not None]
    return f"{name}({', '.join(parts)})"


def _argument(value: Any) -> str:
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        return f"[{', '.join(_argument(item) for item in value)}]"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def delivered(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    """``result``, written into ``out`` if that is given (``out=`` of an operation).

    Raises:
        AutogradError: ``result`` would be recorded; ``out=`` does not record.
        TypeError, ValueError: the dtype or shape of ``out`` does not fit.
    """
    if out is None:
        return result
    from .inplace import write_out

    return write_out(name, result, out)
