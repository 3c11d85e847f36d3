"""Notices about long waits: when they are due, what was told already, and lists of names that are not long."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from .timers import NEVER, Timers

FIRST_SECONDS = 5.0
NEXT_SECONDS = 30.0
K = TypeVar("K", bound=Hashable)


class WaitNotices:
    """Times of the notices about one wait, which began at ``now``. For waits without an agent: their thread looks itself."""

    def __init__(self, now: float) -> None:
        self._next = now + FIRST_SECONDS

    def due(self, now: float) -> bool:
        """Return whether a notice is due; if so, set the time of the next one."""
        if now < self._next:
            return False
        self._next = now + NEXT_SECONDS
        return True

    def pause(self, now: float) -> float:
        """Return the seconds until the next one."""
        return max(self._next - now, 0.0)


class LongWaits(Generic[K]):
    """Notices about the waits of one kind in an agent. The loop looks only when one may be due.

    Args:
        timers: the agent's timers.
        first: seconds that a wait takes until it is told.
        waiting: returns a key for each thing that waits, and since when.
        tell: called on the loop with the key of each thing to tell, and whether it was told before.
        again: seconds until it is told again.

    Attributes:
        looking: a look is to come; ``begin`` does nothing then.
    """

    def __init__(
        self,
        timers: Timers,
        first: float,
        waiting: Callable[[], Iterable[tuple[K, float]]],
        tell: Callable[[K, bool], object],
        again: float = NEVER,
    ) -> None:
        self._timers = timers
        self._first = first
        self._waiting = waiting
        self._tell = tell
        self._again = again
        self._told: dict[K, float] = {}  # when the things that were told and still wait are told again
        self._alarm = timers.alarm(self._look)
        self.looking = False

    def begin(self) -> None:
        """Note that something waits from now on. Any thread."""
        if not self.looking:
            self.looking = True
            self._alarm.set(self._timers.now() + self._first)

    def _look(self) -> None:
        self.looking = False  # first: of a wait that begins from here on, ``begin`` takes care
        now, before = self._timers.now(), self._told
        times = {key: before.get(key, since + self._first) for key, since in self._waiting()}
        due = [key for key, when in times.items() if when <= now]
        times.update(dict.fromkeys(due, now + self._again))
        self._told = {key: when for key, when in times.items() if key in before or key in due}
        if (first := min(times.values(), default=NEVER)) < NEVER:
            self.looking = True
            self._alarm.set(first)
        for key in due:
            self._tell(key, key in before)
