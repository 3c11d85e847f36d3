"""Schedules of messages that test protocols: by seed, with losses, repetitions, reordering and kills; or every order.

They are for state machines without I/O. A test owns its machines and runs them; a `Mesh` decides what arrives next::

    for seed in seeds(1000):
        with replayable(seed):
            mesh = Mesh(random.Random(seed))
            ...
            while (arrival := mesh.step()) is not None:
                ...  # hand it to the machine of arrival.to, post what that says

A failing seed is printed; ``TELEGRAD_SEED=17 pytest ...`` runs that one alone.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from ..rpc.links.control_queue import ControlQueue

T = TypeVar("T")


def seeds(count: int) -> Sequence[int]:
    """Return the seeds to run: 0 to ``count`` - 1, or only the one in the environment variable ``TELEGRAD_SEED``."""
    chosen = os.environ.get("TELEGRAD_SEED")
    return range(count) if chosen is None else [int(chosen)]


@contextmanager
def replayable(seed: int) -> Iterator[None]:
    """Print how to run this seed again if the body fails."""
    try:
        yield
    except BaseException:
        print(f"\nfailing seed: run it again with TELEGRAD_SEED={seed} pytest ...")
        raise


class How(Enum):
    """Way by which something arrives."""

    CONTROL = "control"  # over the reliable control queue
    THROWN = "thrown"  # over the bare network
    LOST = "lost"  # the news that `Arrival.source` is lost
    LATER = "later"  # from the worker to itself, by `Mesh.later`


class Arrival(NamedTuple):
    """Arrival of something at the machine of ``to``."""

    how: How
    source: Any
    to: Any
    what: Any


class _Frame(NamedTuple):
    """Frame of a control queue: a message (None: only acknowledgements) and what is acknowledged."""

    message: int | None
    payload: bytes
    acks: list[int]


class Mesh:
    """Workers (any hashable keys), an unreliable network between each two, and a real `ControlQueue` on it.

    ``lose`` and ``repeat`` are the probabilities that a frame vanishes or arrives twice. Delay and order are
    arbitrary: what arrives next is drawn from everything in flight. What a killed worker sent stays in flight.
    """

    def __init__(self, rng: random.Random, lose: float = 0.15, repeat: float = 0.1) -> None:
        self.rng = rng
        self.now = 0.0
        self.alive: set[Hashable] = set()
        self.dead: list[Hashable] = []
        self._lose = lose
        self._repeat = repeat
        self._flying: list[Arrival] = []
        self._queues: dict[tuple[Hashable, Hashable], ControlQueue] = {}
        self._payloads: list[object] = []

    def join(self, key: Hashable) -> None:
        """Add a worker. The driver tells it of those in ``dead``, as its membership would."""
        self.alive.add(key)

    def kill(self, key: Hashable) -> None:
        """Stop a worker; each other worker is told at some later time."""
        self.alive.remove(key)
        self.dead.append(key)
        self._flying = [arrival for arrival in self._flying if arrival.to != key]
        for pair in [pair for pair in self._queues if pair[0] == key]:
            del self._queues[pair]
        self._flying.extend(Arrival(How.LOST, key, other, None) for other in sorted(self.alive, key=repr))

    def throw(self, source: Hashable, to: Hashable, what: object) -> int:
        """Send over the bare network, and return how many copies are in flight (0: it is lost)."""
        return self._throw(Arrival(How.THROWN, source, to, what))

    def later(self, to: Hashable, what: object) -> None:
        """Have ``to`` receive something of its own at some later time: a time-out, a finalizer, ..."""
        self._flying.append(Arrival(How.LATER, to, to, what))

    def post(self, source: Hashable, to: Hashable, message: object) -> None:
        """Send over the control queue: it arrives exactly once unless one of the two is lost."""
        self._payloads.append(message)
        queue = self.queue(source, to)
        queue.post(str(len(self._payloads) - 1).encode(), topic=0)
        self._transmit(source, to, queue, queue.unsent(self.now))

    def queue(self, source: Hashable, to: Hashable) -> ControlQueue:
        """Return the queue of ``source`` for its peer ``to``."""
        queue = self._queues.get((source, to))
        if queue is None:
            queue = self._queues[source, to] = ControlQueue(resend_after=1.0, resend_cap=8.0)
        return queue

    def step(self) -> Arrival | None:
        """Return the next arrival; None when nothing is in flight and every queue is empty."""
        while True:
            if not self._flying or self.rng.random() < 0.02:
                self._advance_clock()
            if not self._flying:
                return None
            arrival = self._receive(self._pick())
            if arrival is not None:
                return arrival

    def _pick(self) -> Arrival:
        flying = self._flying
        at = int(self.rng.random() * len(flying))
        flying[at], flying[-1] = flying[-1], flying[at]
        return flying.pop()

    def _receive(self, arrival: Arrival) -> Arrival | None:
        if arrival.to not in self.alive:
            return None
        if arrival.how is How.LOST:
            self.queue(arrival.to, arrival.source).peer_lost()
        if arrival.how is How.CONTROL:
            return self._receive_frame(arrival)
        return arrival

    def _receive_frame(self, arrival: Arrival) -> Arrival | None:
        frame: _Frame = arrival.what
        queue = self.queue(arrival.to, arrival.source)
        queue.acknowledge(frame.acks)
        if frame.message is None:
            return None
        first = queue.receive(frame.message)
        self._throw(Arrival(How.CONTROL, arrival.to, arrival.source, _Frame(None, b"", queue.take_acks())))
        return arrival._replace(what=self._payloads[int(frame.payload)]) if first else None

    def _transmit(self, source: Hashable, to: Hashable, queue: ControlQueue, messages: Iterable[Any]) -> None:
        for message in messages:
            self._throw(Arrival(How.CONTROL, source, to, _Frame(message.id, message.payload, queue.take_acks())))

    def _throw(self, arrival: Arrival) -> int:
        draw = self.rng.random()
        copies = 0 if draw < self._lose else 2 if draw > 1.0 - self._repeat else 1
        self._flying.extend([arrival] * copies)
        return copies

    def _advance_clock(self) -> None:
        """Advance the clock to repetitions that are due, until something is in flight, or nothing is left to repeat."""
        while True:
            times = [when for queue in self._queues.values() if (when := queue.next_due()) is not None]
            if not times:
                return
            self.now = max(self.now, min(times))
            for (source, to), queue in list(self._queues.items()):
                self._transmit(source, to, queue, queue.due(self.now))
            if self._flying:
                return


class Choices:
    """Choices of a search for a scenario: each run takes another branch, until all were taken."""

    def __init__(self) -> None:
        self._path: list[tuple[int, int]] = []  # which one was taken, of how many
        self._at = 0

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; over all runs, each of them."""
        if self._at == len(self._path):
            self._path.append((0, len(options)))
        taken, count = self._path[self._at]
        if count != len(options):
            raise RuntimeError("your scenario is not deterministic: the same choices led to another state")
        self._at += 1
        return options[taken]

    def advance(self) -> bool:
        """Go on to the next run; False when every branch was taken."""
        self._at = 0
        while self._path:
            taken, count = self._path.pop()
            if taken + 1 < count:
                self._path.append((taken + 1, count))
                return True
        return False

    def __repr__(self) -> str:
        return f"Choices({[taken for taken, _ in self._path]})"


def every_order(scenario: Callable[[Choices], None]) -> int:
    """Run ``scenario`` once for every sequence of choices that it can make, and return how many there were."""
    choices, runs = Choices(), 0
    while True:
        runs += 1
        try:
            scenario(choices)
        except BaseException:
            print(f"\nfailing order: {choices} in run {runs}")
            raise
        if not choices.advance():
            return runs
