"""Scalars that a program logs: ``telegrad.log(loss=0.3, step=7)``. They are kept in its process; ``rpc.observe`` reads them.

Any thread may log, also a signal handler or a finalizer that interrupted another call of ``log`` in its own thread. So no
call waits for a lock: a value is appended to a queue, and the thread that gets the lock moves what is queued to the series.
"""

from __future__ import annotations

import operator
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

from .series import Point, Series

MOST_NAMES = 1000
MOST_NAME_CHARACTERS = 100
MOST_QUEUED = 100_000  # while one thread moves values; beyond, the oldest are lost
LARGEST_STEP = 2**63 - 1
TOO_MANY = (
    "log() got a new name, {name!r}, when {most:,} names have values already: values of further names are dropped. A name "
    "stands for a series: give what changes (an epoch, an id) as a value or as step=, not as a part of the name"
)

Sink = Callable[[str, Point], None]


class ProgramLog:
    """Series of one process by name, and the sinks that get every value.

    Attributes:
        dropped: how many values were dropped because of their new names.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._series: dict[str, Series] = {}
        self._queue: deque[tuple[str, int | None, float, float]] = deque(maxlen=MOST_QUEUED)
        self._moving = threading.Lock()
        self._sinks: tuple[Sink, ...] = ()

    def add(self, values: dict[str, float], step: int | None) -> None:
        """Add a value to each series that is named.

        Args:
            values: finite or not, by name.
            step: their place in the program's course; None counts the values of each name.
        """
        now = time.time()
        for name, value in values.items():
            self._queue.append((name, step, value, now))
        while self._queue and self._moving.acquire(blocking=False):
            try:
                self._move()
            finally:
                self._moving.release()

    def _move(self) -> None:
        while self._queue:
            name, step, value, now = self._queue.popleft()
            series = self._series.get(name) or self._new(name)
            if series is None:
                continue
            point = Point(series.count if step is None else step, value, now)
            series.add(point)
            for sink in self._sinks:
                sink(name, point)

    def _new(self, name: str) -> Series | None:
        if len(self._series) >= MOST_NAMES:
            self.dropped += 1
            return None
        return self._series.setdefault(name, Series())

    def has_room(self, name: str) -> bool:
        """Return whether values of a name are kept."""
        return name in self._series or len(self._series) < MOST_NAMES

    def series(self) -> dict[str, Series]:
        """Return the series by name, in the order of their first values. They may still change."""
        return dict(self._series)

    def add_sink(self, sink: Sink) -> None:
        """Call ``sink(name, point)`` for each value from now on. It must not raise, and must return soon."""
        self._sinks = (*self._sinks, sink)

    def remove_sink(self, sink: Sink) -> None:
        """Call a sink no longer."""
        self._sinks = tuple(each for each in self._sinks if each is not sink)

    def clear(self) -> None:
        """Forget all values; sinks stay."""
        self._series, self.dropped = {}, 0


_log = ProgramLog()
_warned = False


def program_log() -> ProgramLog:
    """Return the log of this process."""
    return _log


def log_scalars(step: int | None = None, **scalars: Any) -> None:
    """Record scalars of the program by name: ``telegrad.log(loss=0.3, step=7)``.

    The last value of each name, and a thinned series, are a part of ``rpc.observe``. It needs no worker, and any thread may
    call it. Values may be infinite or nan: that is noted, and shown.

    Args:
        step: an integer that places the values; without it the values of each name are counted, from 0.
        scalars: numbers, or arrays and tensors of one element. A name consists of words, which ``/`` or ``.`` may separate
            (``**{"train/loss": 0.3}``), and has at most 100 characters. At most 1,000 names have series.

    Raises:
        TypeError: a value is no number, or ``step`` no integer.
        ValueError: a name is not allowed; a value has several elements; or ``step`` has more than 64 bits.
    """
    if not scalars:
        raise TypeError("log() got nothing to record: write log(loss=0.3), or log(tensor) for the natural logarithm")
    if step is not None:
        step = _checked_step(step)
    values = {name: value if type(value) is float else _number(name, value) for name, value in scalars.items()}
    for name in values:
        if name not in _log._series:
            _check_new(name)
    _log.add(values, step)


def _checked_step(step: Any) -> int:
    try:
        number = operator.index(step)
    except TypeError:
        raise TypeError(f"log() got step={step!r}, a {type(step).__name__}; step must be an integer") from None
    if not -LARGEST_STEP - 1 <= number <= LARGEST_STEP:
        raise ValueError(f"log() got step={number}; step must fit in 64 bits")
    return number


def _number(name: str, value: Any) -> float:
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError(
            f"log() got a {type(value).__name__} as {name!r}; it takes numbers: give float({name}) if it is one"
        )
    if (size := getattr(value, "size", None)) is not None and (size := _elements(value, size)) != 1:
        raise ValueError(
            f"log() got {size:,} elements as {name!r}; a scalar has one: give its mean, or one name for each"
        )
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except OverflowError:
        raise ValueError(f"log() got an integer as {name!r} that is too large for a float") from None
    except (TypeError, ValueError):
        raise TypeError(f"log() got a {type(value).__name__} as {name!r}; it takes real numbers") from None


def _elements(value: Any, size: Any) -> int:
    return value.numel() if hasattr(value, "numel") else size if isinstance(size, int) else 1


def _check_new(name: str) -> None:
    global _warned
    if len(name) > MOST_NAME_CHARACTERS or not all(map(str.isidentifier, name.replace("/", ".").split("."))):
        raise ValueError(
            f"log() got the name {name[:MOST_NAME_CHARACTERS]!r}; a name consists of words such as loss, which '/' or '.' "
            f"may separate, and has at most {MOST_NAME_CHARACTERS} characters"
        )
    if not _warned and not _log.has_room(name):
        _warned = True
        warnings.warn(TOO_MANY.format(name=name, most=MOST_NAMES), RuntimeWarning, stacklevel=4)
