"""Errors of operations: each names the operation and the arguments that it was called with."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from ....base.errors import (
    ArgumentDivisionError,
    ArgumentError,
    ArgumentIndexError,
    ArgumentTypeError,
    ArgumentValueError,
)
from ...tensors import Tensor
from .numpy_errors import reason as reason_of

FAILURES = (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError, OverflowError)

_CLASSES: tuple[tuple[type[Exception], type[ArgumentError]], ...] = (
    (ZeroDivisionError, ArgumentDivisionError),
    (IndexError, ArgumentIndexError),  # before ValueError: NumPy's AxisError is both
    (TypeError, ArgumentTypeError),
    (ValueError, ArgumentValueError),
    (OverflowError, ArgumentValueError),
)


def explained(error: Exception, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
    """Return the error to raise instead of ``error``, with a message that names the operation and its arguments.

    If an operation calls others, the message names the outermost, which the user called. An error of another class than
    those of Python and NumPy is returned as it is.

    Args:
        error: raised by the operation.
        name: name of the operation.
        args, kwargs: the arguments that it was called with.
    """
    if isinstance(error, AttributeError):
        if not hasattr(Tensor, str(error.name)) or isinstance(error.obj, Tensor):
            return error
        return ArgumentTypeError(f"{name}() takes tensors, and you called {called(name, args, kwargs)}")
    kind = _class(error)
    if kind is None:
        return error
    reason = getattr(error, "reason", None) or reason_of(error, (*args, *kwargs.values()))
    named = reason.startswith((f"{name}(", f"{name.rpartition('.')[2]}("))
    result = kind(f"{reason if named else f'{name}(): {reason}'}; you called {called(name, args, kwargs)}")
    result.reason = reason  # type: ignore[attr-defined]
    return result.with_traceback(error.__traceback__)


def _class(error: Exception) -> type[ArgumentError] | None:
    if isinstance(error, ArgumentError):
        return type(error)
    if type(error).__module__.partition(".")[0] not in ("builtins", "numpy"):
        return None
    return next((ours for builtin, ours in _CLASSES if isinstance(error, builtin)), None)


def called(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the call of ``name`` as text, with tensors as dtype and shape: ``add(float32 (2, 3), float32 (4,))``."""
    parts = [_argument(value) for value in args]
    parts += [f"{key}={_argument(value)}" for key, value in kwargs.items() if value is not None]
    return f"{name}({', '.join(parts)})"


def _argument(value: Any) -> str:
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        return f"[{', '.join(_argument(item) for item in value)}]"
    # A long list has a long text, of which only the beginning is needed.
    text = reprlib.repr(value) if isinstance(value, (list, tuple, str, bytes)) and len(value) > 60 else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
