"""Messages between a loader and its workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Begin:
    """To a worker: begin a pass, and drop what is left of the former one."""

    epoch: int
    seed: int


@dataclass(slots=True)
class Task:
    """To a worker: make a batch of the sample indices ``index``.

    Also the numbers of its segments that it may use again (``reusable``), or must not (``lost``).
    """

    epoch: int
    number: int
    index: Any
    reusable: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Failure:
    """Exception in a worker: its pickle if it can be pickled, its class, text and traceback."""

    pickled: bytes | None
    kind: str
    text: str
    traceback: str


@dataclass(slots=True)
class Answer:
    """From a worker: a task is done.

    The batch is packed in parts of these ``sizes``, in the ``segment`` of that number (if ``new``, its descriptor follows) or
    in ``inline``; there is no batch if there is a ``failure``, or at the ``end`` of an iterable dataset. The worker does not
    use the segments ``gone`` again.
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
