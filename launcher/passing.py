"""Pickling of a function, its arguments and the file for reports for a process that ``multiprocessing`` starts.

A new process imports the module of a function. It cannot import the main module of an interactive session, of ``python -c``
or of a program on standard input: what is defined there travels by value, with cloudpickle.
"""

import io
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import cloudpickle

UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError)


class Work:
    """Call ``fn(i, *args)`` that a new process is to make."""

    def __init__(self, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.fn = fn
        self.args = args

    def __reduce__(self) -> tuple[Any, ...]:
        if _importable_main():
            return Work, (self.fn, self.args)
        return _by_value, (_dump_by_value((self.fn, self.args)),)


class PassedDescriptor:
    """File descriptor that a new process inherits, whatever its number there."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self.number),)


def what_cannot_be_pickled(fn: Callable[..., object], error: Exception) -> str:
    """Return why ``multiprocessing`` could not send a function and its arguments, and what to do."""
    try:
        ForkingPickler.dumps(Work(fn, ()))
    except UNPICKLABLE:
        return (
            f"`fn` {fn!r} cannot be sent to a new process: {error}. Define it at the top level of a module, "
            'or pass start_method="fork"'
        )
    return f'`args` cannot be sent to a new process: {error}. Leave that out, or pass start_method="fork"'


class _ByValue(cloudpickle.Pickler):  # type: ignore[misc]  # it is untyped
    """Pickler by value; connections, locks and the like travel as ``multiprocessing`` sends them."""

    @property
    def dispatch_table(self) -> ChainMap[type, Any]:
        """Asked for when a pickler is made: what ``multiprocessing`` can send grows with what is imported of it."""
        return ChainMap(ForkingPickler(io.BytesIO()).dispatch_table, cloudpickle.Pickler.dispatch_table)


@contextmanager
def main_module_stays_here() -> Iterator[None]:
    """Keep ``multiprocessing`` from running "<stdin>" in the processes that are started in this block."""
    main = vars(sys.modules["__main__"])
    if "__file__" not in main or _importable_main():
        yield
        return
    file = main.pop("__file__")
    try:
        yield
    finally:
        main["__file__"] = file


def _importable_main() -> bool:
    """Return whether a new process can import this one's main module."""
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is not None:
        return True
    return Path(getattr(main, "__file__", None) or "").is_file()


def _dump_by_value(value: object) -> bytes:
    buffer = io.BytesIO()
    _ByValue(buffer).dump(value)
    return buffer.getvalue()


def _by_value(dumped: bytes) -> Work:
    return Work(*pickle.loads(dumped))


def _received(duplicate: Any) -> PassedDescriptor:
    return PassedDescriptor(duplicate.detach())
