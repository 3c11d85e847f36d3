"""Sender's side of shared segments: it lends a segment with each large part, and reuses it when it comes back.

A segment is *offered* to the receiver once. When the receiver has mapped it, it is *idle*. When a part is written into it, it
is *lent*, until nothing at the receiver refers to that part any more. Writing into an idle segment takes as long as a copy,
into a new one ten times as long, because of page faults. So segments are kept for a while, in classes of sizes, as far as the
allowance permits. A segment is made only if its class was wanted before, because a part that is sent once is sent faster
without a segment.

No I/O and no clock: the caller carries out what is returned.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from ....core.shared_memory import Segment, create_segment

if TYPE_CHECKING:
    from .allowance import Allowance

IDLE_SECONDS = 60.0
PAGE_BYTES = 4096
STEPS = 8  # classes of sizes from one power of two to the next
CLASS_BYTES = 128 << 20  # most bytes of the segments of one class
FEWEST, MOST = 4, 64  # but a class may always have 4 segments, and never more than 64


@lru_cache(maxsize=1024)
def class_size(size: int) -> int:
    """Return the size of the segments for ``size`` bytes: whole pages, and at most an eighth more than ``size``.

    >>> class_size(1 << 20), class_size((1 << 20) + 1)
    (1048576, 1179648)
    """
    step = max((1 << (size - 1).bit_length()) // (2 * STEPS), PAGE_BYTES)
    return -(-size // step) * step


class Lender:
    """Segments that one session lends to its peer. Any thread.

    Args:
        allowance: for the segments of all sessions.
        create: makes a segment.
    """

    def __init__(self, allowance: Allowance, create: Callable[[int], Segment] = create_segment) -> None:
        self._lock = threading.Lock()
        self._allowance = allowance
        self._create = create
        self._made = 0
        self._refused_at = -2 * IDLE_SECONDS
        self._in_use: dict[int, Segment] = {}  # by number: segments that are offered or lent
        self._idle: dict[int, tuple[Segment, float]] = {}  # by number, with the time since when; the latest last
        self._missed_at: dict[int, float] = {}  # by class: when a segment was wanted and none was idle
        self._gone: list[int] = []  # numbers of dropped segments, of which the receiver was not told yet
        self._closed = False

    def lend(self, size: int) -> tuple[int, Segment] | None:
        """Lend an idle segment for ``size`` bytes; return its number and the segment, ``None`` if there is none."""
        wanted = class_size(size)
        with self._lock:
            for number, (segment, _) in reversed(self._idle.items()):
                if len(segment) == wanted:
                    self._in_use[number] = segment
                    del self._idle[number]
                    return number, segment
        return None

    def offer(self, missed: Iterable[int], now: float) -> list[tuple[int, Segment]]:
        """Return new segments, and their numbers, to be offered to the receiver.

        There are fewer than asked for if a size is wanted for the first time in a while, if there are too many segments, if
        the system gives none, or after ``close``.

        Args:
            missed: sizes in bytes for which ``lend`` had no segment, one for each time.
            now: the time in seconds.
        """
        offers = []
        for wanted, count in Counter(map(class_size, missed)).items():
            with self._lock:
                missed_at, self._missed_at[wanted] = self._missed_at.get(wanted, -2 * IDLE_SECONDS), now
            if now - missed_at < IDLE_SECONDS <= now - self._refused_at:
                offers += [offer for _ in range(count) if (offer := self._new(wanted)) is not None]
        return offers

    def _new(self, size: int) -> tuple[int, Segment] | None:
        with self._lock:
            if not self._room(size):
                return None
            self._made += 1
            number = self._made
        try:
            segment = self._create(size)
        except (OSError, MemoryError):  # no memory, no descriptor, no memfd
            self._allowance.give_back(size)
            return None
        with self._lock:
            if self._closed:  # meanwhile
                self._allowance.give_back(size)
                return None
            self._in_use[number] = segment
        return number, segment

    def _room(self, wanted: int) -> bool:
        # lock held
        if self._closed:
            return False
        held = [*self._in_use.values(), *(segment for segment, _ in self._idle.values())]
        if sum(len(segment) == wanted for segment in held) >= min(max(CLASS_BYTES // wanted, FEWEST), MOST):
            return False
        while not self._allowance.reserve(wanted):
            # A segment of this size that has come back meanwhile is kept: it is as good as a new one.
            other = next((number for number, (segment, _) in self._idle.items() if len(segment) != wanted), None)
            if other is None:
                return False
            self._drop(other)
        return True

    def take_back(self, numbers: Iterable[int], now: float) -> None:
        """Take back segments that the receiver has mapped, does not use any more, or did not receive."""
        with self._lock:
            for number in numbers:
                if (segment := self._in_use.pop(number, None)) is not None:
                    segment.close_descriptor()  # the receiver has one
                    self._idle[number] = segment, now

    def forget(self, numbers: Iterable[int], now: float) -> None:
        """Forget segments that the receiver refused: it cannot map them, or a forked child of it may use them."""
        with self._lock:
            for number in numbers:
                if (segment := self._in_use.pop(number, None)) is not None:
                    self._allowance.give_back(len(segment))
                    self._refused_at = now

    def trim(self, now: float) -> None:
        """Drop segments that have been idle for ``IDLE_SECONDS``."""
        with self._lock:
            for number in [number for number, (_, since) in self._idle.items() if now - since >= IDLE_SECONDS]:
                self._drop(number)

    def take_gone(self) -> list[int]:
        """Remove and return the numbers of dropped segments. The receiver must be told, to unmap them."""
        if not self._gone:
            return []
        with self._lock:
            gone, self._gone = self._gone, []
            return gone

    def restore(self, gone: Iterable[int]) -> None:
        """Put back numbers of which the receiver was not told."""
        with self._lock:
            self._gone += gone

    def close(self) -> None:
        """Drop all segments: the session ended. Arrays at the receiver stay valid."""
        with self._lock:
            self._closed = True
            for segment in [*self._in_use.values(), *(segment for segment, _ in self._idle.values())]:
                self._allowance.give_back(len(segment))
            self._in_use.clear()
            self._idle.clear()

    def __len__(self) -> int:
        """Return how many segments are idle."""
        return len(self._idle)

    def _drop(self, number: int) -> None:
        # lock held
        segment, _ = self._idle.pop(number)
        self._allowance.give_back(len(segment))
        self._gone.append(number)
