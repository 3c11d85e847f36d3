"""Exceptions across workers: the caller gets an exception of the same type, with the callee's traceback as its cause."""

from __future__ import annotations

import io
import pickle
import traceback
from types import TracebackType
from typing import Any

import cloudpickle

from ...base.errors import RemoteError, SerializationError, original_error
from ...core.futures import attempt
from .function_names import Unpickler
from .users_code import users_frames


class RemoteTraceback(Exception):
    """Cause of an exception that was raised on another worker: the traceback from there, as text."""

    def __init__(self, worker: str, text: str) -> None:
        super().__init__(worker, text)
        self.worker = worker
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\non worker {self.worker!r}:\n{self.text.rstrip()}\n"""'


def describe_failure(
    error: BaseException, worker: str, by_value: bool = True
) -> tuple[bytes | None, str, str, str, str]:
    """Return what a reply carries for an exception: its pickle (``None`` if it has none), type, text, traceback, worker.

    The traceback is empty if the text says all (``callees_traceback``).
    It does not raise, even if methods of the exception raise: otherwise the caller would get no answer.

    Args:
        error: the exception.
        worker: name of this worker.
        by_value: its class may travel by value, if it has no name that can be imported.
    """
    error = original_error(error)
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    frames = users_frames(error.__traceback__)
    if isinstance(error.__cause__, RemoteTraceback) and frames is None:
        # it was raised on another worker, or earlier on this one, and only passed on here
        worker, text = error.__cause__.worker, error.__cause__.text
    else:
        text = callees_traceback(error, worker)
    pickled = _pickle(error, by_value) if isinstance(error, Exception) else None
    return pickled, name, _text(error), text, worker


def callees_traceback(error: BaseException, worker: str) -> str:
    """Return the traceback of an exception on this worker as text, for its caller. It does not raise.

    If Telegrad itself refused the request, and the message names the worker, it is that of the cause; empty without one.
    """
    frames = users_frames(error.__traceback__)
    if frames is None and isinstance(error, SerializationError) and repr(worker) in _text(error):
        return "" if error.__cause__ is None else traceback_text(error.__cause__)
    return traceback_text(error, frames)


def traceback_text(error: BaseException, frames: TracebackType | None = None) -> str:
    """Return the traceback of an exception as text, from ``frames`` on. It does not raise."""
    lines, problem = attempt(traceback.format_exception, type(error), error, frames or error.__traceback__)
    if lines is None:
        return f"{type(error).__qualname__} (formatting its traceback raised {type(problem).__name__})"
    return "".join(lines)


def _text(error: BaseException) -> str:
    text, problem = attempt(str, error)
    return f"(its str() raised {type(problem).__name__})" if text is None else text


def rebuild_failure(description: tuple[bytes | None, str, str, str, str]) -> Exception:
    """Return the exception that ``describe_failure`` described; if that cannot be made, a ``RemoteError`` with its text."""
    pickled, name, message, text, worker = description
    error = _unpickle(pickled)
    if error is None:
        error = RemoteError(f"{name} on worker {worker!r}: {message}")
    if text:
        error.__cause__ = RemoteTraceback(worker, text)
    return error


def _pickle(error: Exception, by_value: bool) -> bytes | None:
    """Return the pickle of an exception, if unpickling it gives an equal one."""
    for form in (error, _Bare(error)):
        for dumps in (pickle.dumps, cloudpickle.dumps) if by_value else (pickle.dumps,):
            data, _ = attempt(dumps, form)
            copy: Any = None if data is None else attempt(pickle.loads, data)[0]
            if type(copy).__qualname__ == type(error).__qualname__ and _text(copy) == _text(error):
                return data
    return None


class _Bare:
    """Exception to be unpickled without its constructor, which often takes other arguments than ``args``."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self.error), self.error.args, self.error.__dict__)


def _restore(kind: type[Exception], args: tuple[Any, ...], attributes: dict[str, Any]) -> Exception:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


def _unpickle(pickled: bytes | None) -> Exception | None:
    if pickled is None:
        return None
    error, _ = attempt(Unpickler(io.BytesIO(pickled)).load)
    return error if isinstance(error, Exception) else None
