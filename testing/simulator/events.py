"""Simulated clock and its event queue: one event runs at a time, in the order of simulated time.

An event belongs to a process (or to none: the network and the faults). Events of a stopped process are kept until it goes
on, those of a dead one are discarded.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, deque
from collections.abc import Callable, Collection
from enum import Enum

LAST_EVENTS = 40

Action = Callable[[], object]


class State(Enum):
    """State of a simulated process."""

    RUNNING = "running"
    STOPPED = "stopped"
    DEAD = "dead"


class Process:
    """Process as the event queue sees it."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.state = State.RUNNING
        self.kept: list[tuple[str, Action]] = []  # events that came while it was stopped

    def handshake_seconds(self) -> float:
        """Return how long it takes to answer a dialer."""
        return 0.0

    def run(self, action: Action) -> None:
        """Run one event of this process."""
        action()


class EventQueue:
    """Clock, queue, and trace of a simulation. ``now`` is the simulated time in seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.executed = 0
        self.standstill = 0  # events since the time last changed
        self.kinds: Counter[str] = Counter()
        self._heap: list[tuple[float, int, Process | None, str, Action]] = []
        self._number = 0
        self._last: deque[tuple[float, int, str]] = deque(maxlen=LAST_EVENTS)
        self._digest = hashlib.blake2b(digest_size=8)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, when: float, process: Process | None, kind: str, action: Action) -> None:
        """Run ``action`` at ``when``. ``kind`` names the event in the trace; its first word is counted."""
        self._number += 1
        heapq.heappush(self._heap, (when, self._number, process, kind, action))

    def after(self, seconds: float, process: Process | None, kind: str, action: Action) -> None:
        """Run ``action`` after a while."""
        self.add(self.now + seconds, process, kind, action)

    def drop(self, kinds: Collection[str]) -> None:
        """Drop the events of these kinds that belong to no process."""
        self._heap = [event for event in self._heap if event[2] is not None or event[3] not in kinds]
        heapq.heapify(self._heap)

    def step(self) -> bool:
        """Run the next event; return False if there is none."""
        while self._heap:
            when, _, process, kind, action = heapq.heappop(self._heap)
            if when > self.now:
                self.now, self.standstill = when, 0
            self.standstill += 1
            if process is None:
                self._record(-1, kind)
                action()
                return True
            if process.state is State.RUNNING:
                self._record(process.rank, kind)
                process.run(action)
                return True
            if process.state is State.STOPPED:
                process.kept.append((kind, action))
        return False

    def resume(self, process: Process) -> None:
        """Let a stopped process go on: events that were kept for it happen now, in order."""
        kept, process.kept = process.kept, []
        process.state = State.RUNNING
        for kind, action in kept:
            self.add(self.now, process, kind, action)

    def digest(self) -> str:
        """Return a digest of all events: equal for equal runs."""
        return self._digest.hexdigest()

    def last(self) -> list[str]:
        """Return the last events as text."""
        return [f"{when:12.6f}  {'network' if rank < 0 else f'w{rank}':8} {kind}" for when, rank, kind in self._last]

    def _record(self, rank: int, kind: str) -> None:
        self.executed += 1
        self.kinds[kind.split(" ", 1)[0]] += 1
        self._last.append((self.now, rank, kind))
        self._digest.update(b"%.9f %d %s\n" % (self.now, rank, kind.encode()))
