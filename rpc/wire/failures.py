"""Exceptions across workers: the caller gets the callee's exception, its own type, with the callee's traceback as cause."""

from __future__ import annotations

import io
import pickle
import traceback
from types import TracebackType
from typing import Any

import cloudpickle

from ...core.errors import RemoteError, original_error
from .function_names import Unpickler

ROOM = __name__.partition(".wire")[0] + "."


class RemoteTraceback(Exception):
    """Cause of an exception that was raised on another worker: where it happened there, as text."""

    def __init__(self, worker: str, text: str) -> None:
        super().__init__(worker, text)
        self.worker = worker
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\non worker {self.worker!r}:\n{self.text.rstrip()}\n"""'


def describe_failure(error: BaseException, worker: str) -> tuple[bytes | None, str, str, str, str]:
    """Return what a reply carries for an exception: its pickle (``None`` if it has none), type, text, traceback, worker.

    It cannot fail, whatever the exception's own methods do: nobody else would tell the caller.
    """
    error = original_error(error)
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    text = traceback_text(error, _users_part(error.__traceback__))
    pickled = _pickle(error) if isinstance(error, Exception) else None
    return pickled, name, _text(error), text, worker


def traceback_text(error: BaseException, frames: TracebackType | None = None) -> str:
    """Return the traceback of an exception as text, from ``frames`` on. Cannot fail."""
    try:
        return "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))
    except BaseException as problem:
        return f"{type(error).__qualname__} (formatting its traceback raised {type(problem).__name__})"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as problem:  # here and below: a user's method may raise SystemExit, too
        return f"(its str() raised {type(problem).__name__})"


def rebuild_failure(description: tuple[bytes | None, str, str, str, str]) -> Exception:
    """Return the exception that ``describe_failure`` described, or a ``RemoteError`` that says the same."""
    pickled, name, message, text, worker = description
    error = _unpickle(pickled)
    if error is None:
        error = RemoteError(f"{name} on worker {worker!r}: {message}")
    error.__cause__ = RemoteTraceback(worker, text)
    return error


def _users_part(frames: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the called function on: the frames of rpc say nothing to its author."""
    outermost = frames
    while frames is not None and str(frames.tb_frame.f_globals.get("__name__")).startswith(ROOM):
        frames = frames.tb_next
    return frames or outermost


def _pickle(error: Exception) -> bytes | None:
    """Return the pickle, if an equal exception comes out of it."""
    for form in (error, _Bare(error)):
        for dumps in (pickle.dumps, cloudpickle.dumps):
            try:
                data: bytes = dumps(form)
                copy: Any = pickle.loads(data)
            except BaseException:
                continue
            if type(copy).__qualname__ == type(error).__qualname__ and _text(copy) == _text(error):
                return data
    return None


class _Bare:
    """Exception without its constructor, which often takes other arguments than those that pickle gives it."""

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
    try:
        error = Unpickler(io.BytesIO(pickled)).load()
    except BaseException:
        return None
    return error if isinstance(error, Exception) else None
