"""Objects of Python: what is in them, their attributes, and whose their classes are; no code of the user runs."""

from __future__ import annotations

import array
import functools
import queue
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from .. import nn

PACKAGE = __name__.rpartition(".capture")[0]
_APPLICATIONS = tuple([f"{PACKAGE}.{name}." for name in ("examples", "tools", "benchmarks")])  # as a user's programs
_ELSEWHERE = tuple([f"{PACKAGE}.{name}." for name in ("autograd_dist", "rpc", "rref")])
_BARE = (*nn.Module.__mro__, types.SimpleNamespace)
_BARE_MODULES = frozenset(["builtins", "abc", "collections.abc", "typing", "enum", "argparse"])  # read no attributes
LONG = 1024  # elements; of longer lists only the length is compared, of larger arrays nothing
MISSING = object()


def reader(each: Any) -> Callable[[], Any] | None:
    """Return a function that reads what is in an object, or ``None``."""
    if isinstance(each, np.ndarray):
        return each.tobytes if each.size <= LONG else None
    if isinstance(each, (bytearray, array.array)):
        return functools.partial(bytes, each) if len(each) <= LONG else None
    if isinstance(each, ContextVar):
        return functools.partial(each.get, MISSING)
    if isinstance(each, queue.SimpleQueue):
        return each.qsize
    return each if isinstance(each, weakref.ReferenceType) else None


def attributes_of(each: Any) -> Any:
    """Return the dictionary of an object's attributes."""
    if isinstance(each, threading.local):
        return each.__dict__  # of this thread
    try:
        return object.__getattribute__(each, "__dict__")
    except AttributeError:
        return None


def slots_of(each: Any, base: type) -> Iterator[tuple[Any, str, Any]]:
    """Yield the attributes that a user's class keeps in slots: the object, the name, and the value."""
    slots = vars(base).get("__slots__", ()) if is_users(base) else ()
    for name in (slots,) if isinstance(slots, str) else slots:
        yield each, name, attribute(each, name)


def library_reads(kind: type) -> bool:
    """Return whether code that is not looked at may read any attribute: that of a class of the library or of Python."""
    return any(not (is_users(each) or each in _BARE or each.__module__ in _BARE_MODULES) for each in kind.__mro__)


def is_elsewhere(kind: type) -> bool:
    """Return whether objects of a class have to do with other workers, as references: they are not followed."""
    return kind.__module__.startswith(_ELSEWHERE)


def is_ours(module: str) -> bool:
    """Return whether a module is the library's or NumPy's, whose functions are known; and none of the programs beside it."""
    return f"{module}.".startswith((f"{PACKAGE}.", "numpy.")) and not f"{module}.".startswith(_APPLICATIONS)


def is_users(kind: type) -> bool:
    """Return whether a class is neither the library's nor Python's."""
    module = kind.__module__
    return module == "__main__" or not (is_ours(module) or module.partition(".")[0] in sys.stdlib_module_names)


def contents(cell: types.CellType) -> Any:
    """Return the value of a variable of an enclosing function; ``MISSING`` if it has none."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def attribute(each: Any, name: str) -> Any:
    """Return an attribute that an object really has, or ``MISSING``: no ``__getattr__()`` of the user runs."""
    try:
        return object.__getattribute__(each, name)
    except AttributeError:
        return MISSING
