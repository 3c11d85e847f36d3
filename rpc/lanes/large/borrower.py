"""Receiver's side of shared segments: it maps each once, makes arrays over it, and gives it back when they are all gone.

An array over a segment is the receiver's alone: its lender does not touch the segment until it is given back. That is
decided by the garbage collector, in any thread and at any moment, so a finalizer does no more than to append the number
to a queue.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ....core.errors import SerializationError
from ....core.shared_memory import Segment, fork_count, open_segment
from .allowance import Allowance


class Loan(weakref.ref[Any]):
    """Use of a segment, which ends with the array over it: a weak reference, because a finalizer costs four times as much.

    Attributes:
        number: of the segment.
        segment: refers to the segment, and does not keep it: an interrupt can swallow the end of a loan.
        forks: how many times this process had forked when it began.
    """

    __slots__ = ("forks", "number", "segment")
    number: int
    segment: weakref.ref[Segment]
    forks: int


_loans: dict[int, Loan] = {}  # of all connections, also of those that have ended, by ``id``


class Borrower:
    """Segments that one connection's peer has lent.

    Args:
        allowance: for the segments of all connections.
        wake: called by finalizers, after something was given back: it must take no lock.
    """

    def __init__(self, allowance: Allowance, wake: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._allowance = allowance
        self._wake = wake
        self._process = os.getpid()
        self._segments: dict[int, Segment] = {}
        self._reusable: deque[int] = deque()
        self._refused: deque[int] = deque()

    def open(self, number: int, descriptor: int | None) -> None:
        """Map an offered segment, or refuse it. The descriptor is closed; ``None`` if the system had none to give."""
        segment = None if descriptor is None else self._map(descriptor)
        if segment is None:
            self._refused.append(number)
            return
        with self._lock:
            self._segments[number] = segment
        self._reusable.append(number)

    def _map(self, descriptor: int) -> Segment | None:
        try:
            segment = open_segment(descriptor)
        except (OSError, ValueError):  # there is no room for a mapping, or it is no segment
            return None
        return segment if self._allowance.take(len(segment)) else None

    def piece(self, number: int, size: int) -> memoryview:
        """Return the first ``size`` bytes of a segment, which is given back when nothing refers to them any more.

        Raises:
            SerializationError: there is no such segment, or it is smaller.
        """
        segment = self._segments.get(number)
        if segment is None or size > len(segment):
            raise SerializationError(f"a frame lies in {size} bytes of segment {number}, which is not there or smaller")
        # Views of it, and views of those, refer to it: NumPy keeps the last array that owns or wraps memory.
        memory: Any = np.ndarray((size,), np.uint8, segment)
        loan = Loan(memory, self._released)
        loan.number, loan.segment, loan.forks = number, weakref.ref(segment), fork_count()
        _loans[id(loan)] = loan
        return memoryview(memory)

    def _released(self, loan: Loan) -> None:
        if _loans.pop(id(loan), None) is None or os.getpid() != self._process:
            return  # Ctrl-C came while it was made, and the segment goes with its connection; a forked child has no say
        if loan.forks == fork_count():
            self._reusable.append(loan.number)
        else:  # a child that was forked meanwhile may use the memory: it must not be written to again
            self._refused.append(loan.number)
        self._wake()

    def take_returned(self) -> tuple[list[int], list[int]]:
        """Return, once, the numbers of segments that may be reused, and of those that must not."""
        refused = _emptied(self._refused) if self._refused else []
        if refused:
            self.unmap(refused)
        return _emptied(self._reusable), refused

    def restore(self, reusable: Iterable[int], refused: Iterable[int]) -> None:
        """Take numbers back that the lender was not told."""
        self._reusable.extend(reusable)
        self._refused.extend(refused)

    def unmap(self, numbers: Iterable[int]) -> None:
        """Unmap segments, as soon as nothing refers to them."""
        with self._lock:
            for number in numbers:
                if (segment := self._segments.pop(number, None)) is not None:
                    self._allowance.give_back(len(segment))

    def close(self) -> None:
        """Unmap all segments, as soon as nothing refers to them: the connection ended."""
        self.unmap(list(self._segments))
        self._wake = (
            _do_nothing  # finalizers refer to this object: they must not keep the connection, and what that refers to
        )

    def __len__(self) -> int:
        """Return how many segments are mapped for their lender to use."""
        return len(self._segments)


def _do_nothing() -> None:
    """Wake nobody."""


def _emptied(queue: deque[int]) -> list[int]:
    return [queue.popleft() for _ in range(len(queue))]


def _before_fork() -> None:
    # What the child writes into memory that is in use here is its own, as in all other memory.
    for loan in list(_loans.values()):
        if (segment := loan.segment()) is not None:
            segment.make_private()


os.register_at_fork(before=_before_fork)
