"""``telegrad.progress``: iterate, and record the position, for ``rpc.observe`` and the console of ``telegrad run``."""

from __future__ import annotations

import itertools
import operator
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from .launched import launched_events

T = TypeVar("T")

MOST_LOOPS = 100
NOTE_SECONDS = 0.1  # between two notes of a position for the case of a crash
MOST_DESCRIPTION_CHARACTERS = 200


class Loop:
    """Position of one loop.

    Attributes:
        description: the program's name for it; may be empty.
        total: number of items; None if it is not known.
        done: items that the loop has finished.
        began: when the loop began, by ``time.monotonic``.
        ended: when it ended; None while it runs.
    """

    __slots__ = ("began", "description", "done", "ended", "total")

    def __init__(self, description: str, total: int | None) -> None:
        self.description = description
        self.total = total
        self.done = 0
        self.began = time.monotonic()
        self.ended: float | None = None

    def __str__(self) -> str:
        total = "" if self.total is None else f" of {self.total:,}"
        return f"{self.description or 'a loop'}: {self.done:,}{total} done"

    def seconds(self) -> float:
        """Return for how long it has run."""
        return (self.ended or time.monotonic()) - self.began


_numbers = itertools.count()
_loops: dict[int, Loop] = {}  # the oldest first; changed by single operations only, for a finalizer may end a loop


def progress(iterable: Iterable[T], total: int | None = None, description: str = "") -> Iterator[T]:
    """Return an iterator of the same items that records its position: ``for batch in progress(batches): ...``.

    The position, and the rate that follows from it, are a part of ``rpc.observe``. Nothing is printed. It needs no worker.

    Args:
        iterable: the items.
        total: their number; by default ``len(iterable)`` where it has one.
        description: names the loop; another loop of that name replaces it when it has ended.

    Raises:
        TypeError: ``iterable`` is not iterable, ``total`` no integer, or ``description`` no text.
        ValueError: ``total`` is negative.
    """
    if not isinstance(description, str):
        raise TypeError(f"progress() got description={description!r}; it must be a text")
    if total is None and hasattr(type(iterable), "__len__"):
        total = len(iterable)  # type: ignore[arg-type]
    try:
        items = iter(iterable)
    except TypeError:
        hint = ": iterate over it yourself, and log the position" if hasattr(iterable, "__aiter__") else ""
        raise TypeError(f"progress() takes an iterable, not {type(iterable).__name__}{hint}") from None
    return _counted(items, None if total is None else _checked_total(total), description[:MOST_DESCRIPTION_CHARACTERS])


def loops() -> list[Loop]:
    """Return the loops of this process that run, and the last ones that have ended; the oldest first."""
    return list(_loops.values())


def _checked_total(total: object) -> int:
    try:
        number = operator.index(total)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"progress() got total={total!r}; it must be an integer, or None if it is not known") from None
    if number < 0:
        raise ValueError(f"progress() got total={number}; it must not be negative")
    return number


def _counted(items: Iterator[T], total: int | None, description: str) -> Iterator[T]:
    loop = Loop(description, total)
    _add(loop)
    noted, due = launched_events(), 0.0
    try:
        for item in items:
            yield item
            loop.done += 1
            if noted is not None and (now := time.monotonic()) >= due:
                due = now + NOTE_SECONDS
                noted.set(f"loop {description}", str(loop))
    finally:
        loop.ended = time.monotonic()


def _add(loop: Loop) -> None:
    for number, other in list(_loops.items()):
        if other.ended is not None and other.description == loop.description:
            _loops.pop(number, None)
    _loops[next(_numbers)] = loop
    ended = [number for number, other in list(_loops.items()) if other.ended is not None]
    surplus = len(_loops) - MOST_LOOPS
    for number in [*ended, *list(_loops)][: max(surplus, 0)]:
        _loops.pop(number, None)
