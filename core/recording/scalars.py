"""Scalars that a program logs: ``telegrad.log(loss=0.3, step=7)``. They are kept in its process; ``rpc.observe`` reads them."""

from __future__ import annotations

import operator
import os
import warnings
from typing import Any

from ...base.job_records import EVENT_FILES
from .launched import launched_events
from .process_log import MOST_NAMES, ProgramLog, program_log

MOST_NAME_CHARACTERS = 100
LARGEST_STEP = 2**63 - 1
TOO_MANY = (
    "log() got a new name, {name!r}, when {most:,} names have values already: values of further names are dropped. A name "
    "stands for a series: give what changes (an epoch, an id) as a value or as step=, not as a part of the name"
)

_warned = _began = False


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
    log = program_log()
    if not scalars:
        raise TypeError("log() got nothing to record: write log(loss=0.3), or log(tensor) for the natural logarithm")
    if step is not None:
        step = _checked_step(step)
    values = {name: value if type(value) is float else _number(name, value) for name, value in scalars.items()}
    for name in values:
        if not log.knows(name):
            _check_new(log, name)
    log.add(values, step)


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


def _check_new(log: ProgramLog, name: str) -> None:
    global _warned, _began
    if len(name) > MOST_NAME_CHARACTERS or not all(map(str.isidentifier, name.replace("/", ".").split("."))):
        raise ValueError(
            f"log() got the name {name[:MOST_NAME_CHARACTERS]!r}; a name consists of words such as loss, which '/' or '.' "
            f"may separate, and has at most {MOST_NAME_CHARACTERS} characters"
        )
    if not _began:
        _began = True
        _serve_launcher(log)
    if not _warned and not log.has_room():
        _warned = True
        warnings.warn(TOO_MANY.format(name=name, most=MOST_NAMES), RuntimeWarning, stacklevel=5)


def _serve_launcher(log: ProgramLog) -> None:
    """Begin what the launcher of this process asks for: an event file, and the last values for the case of a crash."""
    if EVENT_FILES in os.environ:
        from .event_files import log_as_launched

        log_as_launched()
    if (noted := launched_events()) is not None:
        log.add_sink(lambda name, point: noted.set(name, f"logged {name}={point.value:g} at step {point.step}"))
