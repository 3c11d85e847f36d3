"""``operation``: what makes a function an operation that users call.

It can be taken over (``interception``), it is known by name (``OPERATIONS``), and its errors say which operation it was
and what it was given.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .errors import ArgumentDivisionError, ArgumentError, ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from .interception import NOT_TAKEN, active, offer
from .tensors import Tensor
from .wording import in_our_words

P = ParamSpec("P")
R = TypeVar("R")
FAILURES = (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError, OverflowError)

# Taken too, as in PyTorch.
_NUMPYS_NAMES = {"axis": "dim", "keepdims": "keepdim"}

# Every operation by name, for listings and for checks that none is forgotten.
OPERATIONS: dict[str, Callable[..., Any]] = {}


def operation(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function on tensors that is written out by hand; ``factories`` make the others.

    NumPy's ``axis`` and ``keepdims`` then stand for ``dim`` and ``keepdim``.
    """
    name = function.__name__
    parameters = inspect.signature(function).parameters.values()
    # ``flip(x, dims=(0, 1))`` means ``flip(x, 0, 1)``: a parameter that takes any number of values has a name as well.
    gathered = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if active and (taken := offer(call, args, kwargs)) is not NOT_TAKEN:
            return taken
        if kwargs and not kwargs.keys().isdisjoint(_NUMPYS_NAMES):
            kwargs = {_NUMPYS_NAMES.get(key, key): value for key, value in kwargs.items()}  # type: ignore[assignment]
        if gathered and gathered in kwargs:
            args = (*args, kwargs.pop(gathered))  # type: ignore[assignment]
        try:
            return function(*args, **kwargs)
        except FAILURES as error:
            raise explained(error, name, args, kwargs) from None

    OPERATIONS[name] = call
    return call


_KINDS: tuple[tuple[type[Exception], type[ArgumentError]], ...] = (
    (ZeroDivisionError, ArgumentDivisionError),
    (IndexError, ArgumentIndexError),  # before ValueError: NumPy's AxisError is both
    (TypeError, ArgumentTypeError),
    (ValueError, ArgumentValueError),
    (OverflowError, ArgumentValueError),
)


def explained(error: Exception, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
    """The error to raise instead of ``error``: its message names the operation and what that was called with.

    Of operations within one another it names the outermost, the one that the user called. An error of a class of the
    user's own stays as it is.
    """
    if isinstance(error, AttributeError):
        if not hasattr(Tensor, str(error.name)) or isinstance(error.obj, Tensor):
            return error
        return ArgumentTypeError(f"{name}() takes tensors, and you called {called(name, args, kwargs)}")
    name = name.replace("linalg_", "linalg.")
    kind = _kind(error)
    if kind is None:
        return error
    reason = getattr(error, "reason", None) or in_our_words(str(error))
    text = reason if reason.startswith((f"{name}(", f"linalg.{name}(")) else f"{name}(): {reason}"
    result = kind(f"{text}; you called {called(name, args, kwargs)}")
    result.reason = reason  # type: ignore[attr-defined]
    return result.with_traceback(error.__traceback__)


def _kind(error: Exception) -> type[ArgumentError] | None:
    if isinstance(error, ArgumentError):
        return type(error)
    if type(error).__module__.partition(".")[0] not in ("builtins", "numpy"):
        return None
    return next((ours for builtin, ours in _KINDS if isinstance(error, builtin)), None)


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
    # Of a long list, not all of its text is made only to be cut.
    text = reprlib.repr(value) if isinstance(value, (list, tuple, str, bytes)) and len(value) > 60 else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def delivered(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    """``result``, written into ``out`` if that is given (``out=`` of an operation).

    Raises:
        AutogradError: ``result`` would be recorded; ``out=`` does not record.
        TypeError, ValueError: the dtype or shape of ``out`` does not fit.
    """
    if out is None:
        return result
    from .ops.table.in_place import write_out

    return write_out(name, result, out)
