"""Receiver's side of shared segments: it maps each once, makes arrays over it, and gives it back when all arrays are gone.

An array over a segment belongs to the receiver: the lender does not touch the segment until it is given back. The garbage
collector decides when that is, in any thread and at any moment. So a finalizer only appends the segment's number to a queue.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.errors import SerializationError
from ....core.shared_memory import Segment, fork_count, open_segment

if TYPE_CHECKING:
    from .allowance import Allowance


class SegmentLoan(weakref.ref[Any]):
    """Use of a segment, which ends with the array over it. A weak reference, because a finalizer costs four times as much.

    Attributes:
        number: number of the segment.
        segment: weak reference to the segment: a signal handler can lose the end of a loan, which must not keep the segment.
        forks: how many times this process had forked when the loan began.
    """

    __slots__ = ("forks", "number", "segment")
    number: int
    segment: weakref.ref[Segment]
    forks: int


_loans: dict[int, SegmentLoan] = {}  # by ``id``: loans of all sessions, also of sessions that have ended


class Borrower:
    """Segments that one session's peer has lent.

    Args:
        allowance: for the segments of all sessions.
        wake: called by finalizers after a segment was given back; it must take no lock.
    """

    def __init__(self, allowance: Allowance, wake: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._allowance = allowance
        self._wake = wake
        self._process = os.getpid()
        self._segments: dict[int, Segment] = {}
        self._reusable: deque[int] = deque()
        self._refused: deque[int] = deque()
        self._closed = False

    def open(self, number: int, descriptor: int | None) -> None:
        """Map an offered segment, or refuse it, and close the descriptor; ``None`` if the system had none to give."""
        segment = None if descriptor is None else self._map(descriptor)
        if segment is None:
            self._refused.append(number)
            return
        with self._lock:
            if self._closed:  # meanwhile: the thread that reads may be here when the session ends
                self._allowance.give_back(len(segment))
                return
            self._segments[number] = segment
        self._reusable.append(number)

    def _map(self, descriptor: int) -> Segment | None:
        try:
            segment = open_segment(descriptor)
        except (OSError, ValueError):  # no address space for a mapping, or the descriptor is no segment
            return None
        return segment if self._allowance.reserve(len(segment)) else None

    def piece(self, number: int, size: int) -> memoryview:
        """Return the first ``size`` bytes of a segment, which is given back when nothing refers to them any more.

        Raises:
            SerializationError: there is no such segment, or it is smaller than ``size``.
        """
        segment = self._segments.get(number)
        if segment is None or size > len(segment):
            raise SerializationError(f"a frame lies in {size} bytes of segment {number}, which is not there or smaller")
        # All views refer to this array, also views of views: NumPy keeps the last array that owns or wraps memory.
        memory: Any = np.ndarray((size,), np.uint8, segment)
        loan = SegmentLoan(memory, self._released)
        loan.number, loan.segment, loan.forks = number, weakref.ref(segment), fork_count()
        _loans[id(loan)] = loan
        return memoryview(memory)

    def _released(self, loan: SegmentLoan) -> None:
        if _loans.pop(id(loan), None) is None or os.getpid() != self._process:
            return  # a handler interrupted ``piece``: the segment stays until its session ends. Or this is a forked child.
        if loan.forks == fork_count():
            self._reusable.append(loan.number)
        else:  # a child that was forked meanwhile may use the memory, so it must not be written to again
            self._refused.append(loan.number)
        self._wake()

    def take_returned(self) -> tuple[list[int], list[int]]:
        """Remove and return the numbers of segments that may be reused, and of those that must not be reused."""
        refused = _emptied(self._refused) if self._refused else []
        if refused:
            self.unmap(refused)
        return _emptied(self._reusable), refused

    def restore(self, reusable: Iterable[int], refused: Iterable[int]) -> None:
        """Put back numbers of which the lender was not told."""
        self._reusable.extend(reusable)
        self._refused.extend(refused)

    def unmap(self, numbers: Iterable[int]) -> None:
        """Unmap segments as soon as nothing refers to them."""
        with self._lock:
            for number in numbers:
                if (segment := self._segments.pop(number, None)) is not None:
                    self._allowance.give_back(len(segment))

    def close(self) -> None:
        """Unmap all segments as soon as nothing refers to them: the session ended."""
        with self._lock:
            self._closed = True
        self.unmap(list(self._segments))
        # Finalizers refer to this object, and must not keep the session and the objects to which that refers.
        self._wake = _do_nothing

    def __len__(self) -> int:
        """Return how many segments of the lender are mapped."""
        return len(self._segments)


def _do_nothing() -> None:
    """Do nothing."""


def _emptied(queue: deque[int]) -> list[int]:
    return [queue.popleft() for _ in range(len(queue))]


def _before_fork() -> None:
    # The child's writes to memory that is in use here must not be seen here, as is so for all other memory.
    for loan in list(_loans.values()):
        if (segment := loan.segment()) is not None:
            segment.make_private()


os.register_at_fork(before=_before_fork)
