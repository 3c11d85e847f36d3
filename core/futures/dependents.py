"""Futures and other objects that a future completes: found in its callbacks and waiters, of which no code runs here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from .future import Future
from .outcomes import _Countdown, _Watcher

MOST_DEPTH = 4  # of objects in a callback


def direct_dependents(future: Future[Any], kinds: tuple[type, ...] = ()) -> list[Any]:
    """Return the futures, and objects of other types, to which the callbacks and waiters of a future refer; perhaps itself.

    Args:
        future: a future that is not complete.
        kinds: types of further objects to find.
    """
    wanted = (Future, *kinds)
    waiting = [*list(future._callbacks), *list(future._waiters), *future.leads_to()]
    return [found for each in waiting for found in _within(each, wanted, 0)]


def _within(value: Any, wanted: tuple[type, ...], depth: int) -> Iterator[Any]:
    """Return the objects of some types to which a callback refers: by its variables, arguments and object."""
    kind = type(value)
    if issubclass(kind, wanted):
        yield value
        return
    if depth < MOST_DEPTH:
        for each in _parts(kind, value):
            yield from _within(each, wanted, depth + 1)


def _parts(kind: type, value: Any) -> list[Any]:
    if kind is FunctionType:
        return [_content(cell) for cell in value.__closure__ or ()]
    if kind is MethodType:
        return [value.__self__, value.__func__]
    if kind is partial:
        return [value.func, *value.args, *value.keywords.values()]
    if kind is _Watcher:
        return [value._countdown]
    return [value.over] if kind is _Countdown else []


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None
