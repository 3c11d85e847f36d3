"""What a loader and its workers tell each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Begin:
    """To a worker: a pass begins; whatever is left of the former one is not wanted any more."""

    epoch: int
    seed: int


@dataclass(slots=True)
class Task:
    """To a worker: make a batch of these sample numbers. Also which of its segments it may use again, or must not."""

    epoch: int
    number: int
    index: Any
    reusable: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Failure:
    """An exception: its pickle if it has one, its class, text and traceback."""

    pickled: bytes | None
    kind: str
    text: str
    traceback: str


@dataclass(slots=True)
class Answer:
    """From a worker: a task is done.

    The batch is in a parcel of these ``sizes``, in the ``segment`` of that number (if ``new``, its descriptor follows) or in
    ``inline``; there is none if there is a ``failure``, or if a stream came to its ``end``. The segments ``gone`` are used no
    more.
    """

    epoch: int
    number: int
    sizes: list[int] = field(default_factory=list)
    inline: bytearray | None = None
    segment: int | None = None
    new: bool = False
    gone: list[int] = field(default_factory=list)
    failure: Failure | None = None
    end: bool = False


STARTING = -1  # the number of an answer about a worker that could not start
