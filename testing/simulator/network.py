"""Simulated network, and what can happen to a frame on its way.

A lane promises that a session is a stream: frames arrive in order and once while it stands, and are lost only when it
breaks; a request may have run although its answer is lost. So every frame may be late, and everything after it; a
session may *break*, and each end hears of it on its own; a *cut* link between two workers is silent, delivers what it
holds if it heals soon enough, and else its sessions break by keepalive; dials over it get no answer. A stopped process
is silent too. At a dead one sessions break and dials are refused.

The control channel promises more than that: exactly once, whatever is beneath it. So its frames (messages,
acknowledgements, and both on their way through a third worker) are also *dropped*, *repeated* and *reordered* in a
session that stands. The ownership protocol promises the same of messages that carry references, so those are repeated
too.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from ...rpc.extend import FrameKind, Incoming, LaneListener
from ...rpc.wire.frames import decode
from ...rref.context import REFERENCE_EXTRA as REFERENCES
from .events import Action, EventQueue, Process, State

if TYPE_CHECKING:
    from .session import SimulatedSession

LATENCY_SECONDS = 0.002
LATE_SECONDS = 1.0
CONTROL = (FrameKind.CONTROL, FrameKind.ACKNOWLEDGE, FrameKind.RELAY)
KIND_NAMES = {value: name.lower() for name, value in vars(FrameKind).items() if isinstance(value, int)}


class Rates:
    """Probabilities of faults of one frame."""

    def __init__(self, delay: float = 0.0, reorder: float = 0.0, repeat: float = 0.0, drop: float = 0.0) -> None:
        self.delay = delay
        self.reorder = reorder
        self.repeat = repeat
        self.drop = drop


class Network:
    """Sessions between the processes of a simulation."""

    def __init__(self, queue: EventQueue, rng: random.Random, keepalive: float) -> None:
        self.queue = queue
        self.rates = Rates()
        self.counts: Counter[str] = Counter()
        self.keepalive = keepalive
        self.listeners: dict[str, tuple[Process, LaneListener]] = {}
        self._rng = rng
        self._ends: dict[SimulatedSession, None] = {}  # open ones, in the order in which they were made
        self._cuts: dict[frozenset[int], int] = {}  # links that are cut, each with the number of its cut
        self._cut_number = 0

    # -- faults

    def is_cut(self, one: int, other: int) -> bool:
        """Return whether the link between two workers is cut."""
        return bool(self._cuts) and frozenset((one, other)) in self._cuts

    def cut(self, one: int, other: int) -> None:
        """Make a link silent. Its sessions break if it stays silent for too long."""
        link = frozenset((one, other))
        if link in self._cuts:
            return
        self._cut_number += 1
        self._cuts[link] = number = self._cut_number
        self.queue.after(self._silence(), None, f"keepalive {one}-{other}", lambda: self._silent(link, number))

    def heal(self, one: int, other: int) -> None:
        """Undo ``cut``: frames that the link held arrive now."""
        if self._cuts.pop(frozenset((one, other)), None) is None:
            return
        for end in self._between(frozenset((one, other))):
            end.release()
            if end.other is not None and end.other.process.state is State.DEAD:
                self.break_end(end)

    def heal_all(self) -> None:
        """Undo every cut."""
        for link in list(self._cuts):
            self.heal(*link)

    def break_one(self) -> bool:
        """Break a random session, whose frames in flight may be lost; return False if there is none."""
        dialed = [end for end in self._ends if end.dialed and end.other is not None and not end.broken]
        if not dialed:
            return False
        self._break(self._rng.choice(dialed))
        return True

    def silence(self, process: Process) -> None:
        """Make a stopped process silent: sessions to it break if it stays so for too long."""
        self.queue.after(self._silence(), None, f"keepalive {process.rank}", lambda: self._stopped(process))

    def kill(self, process: Process) -> None:
        """Break the sessions of a killed process; it does not listen any more."""
        for address in [address for address, (owner, _) in self.listeners.items() if owner is process]:
            del self.listeners[address]
        for end in [end for end in self._ends if end.process is process]:
            del self._ends[end]
            end.closed = True
            if end.other is not None and not self.is_cut(process.rank, end.other.process.rank):
                self.break_end(end.other)

    def _silence(self) -> float:
        return self.keepalive * (1.0 + self._rng.random())

    def _silent(self, link: frozenset[int], number: int) -> None:
        if self._cuts.get(link) == number:
            for end in self._between(link):
                end.broken = True
                self.break_end(end)

    def _stopped(self, process: Process) -> None:
        if process.state is State.STOPPED:
            for end in [end for end in self._ends if end.process is process and end.other is not None]:
                self._break(end)

    def _between(self, link: frozenset[int]) -> list[SimulatedSession]:
        return [
            end for end in self._ends if end.other is not None and link == {end.process.rank, end.other.process.rank}
        ]

    def _break(self, end: SimulatedSession) -> None:
        assert end.other is not None
        end.broken = end.other.broken = True
        self.break_end(end)
        self.break_end(end.other)

    def break_end(self, end: SimulatedSession) -> None:
        error = ConnectionResetError("the simulated connection broke")
        self.queue.after(self.latency(), end.process, "break", lambda: end.fail(error))

    # -- frames

    def latency(self) -> float:
        """Return how long a frame travels, in seconds."""
        if self._rng.random() < self.rates.delay:
            self.counts["delay"] += 1
            return self._rng.random() * LATE_SECONDS
        return LATENCY_SECONDS * (0.1 + self._rng.random())

    def opened(self, end: SimulatedSession) -> None:
        """Record a session that was made."""
        self._ends[end] = None

    def closed(self, end: SimulatedSession) -> None:
        """Record an end that was closed."""
        self._ends.pop(end, None)

    def carry(self, target: SimulatedSession, frame: bytearray) -> None:
        """Carry a frame to the other end."""
        kind = frame[0]
        label = f"{KIND_NAMES.get(kind, kind)} to w{target.process.rank}"
        deliver = partial(target.take, frame)
        if kind in CONTROL and self._mistreat(target, label, deliver):
            return
        target.enqueue(label, deliver)
        if self._rng.random() < self.rates.repeat and (kind in CONTROL or carries_references(frame)):
            self.counts["repeat"] += 1
            if kind not in CONTROL:
                _count_as_sent(target, len(frame))
            again = partial(target.take, bytearray(frame))
            self.queue.after(self._rng.random() * LATE_SECONDS, target.process, f"repeated {label}", again)

    def _mistreat(self, target: SimulatedSession, label: str, deliver: Action) -> bool:
        draw = self._rng.random()
        if draw < self.rates.drop:
            self.counts["drop"] += 1
            return True
        if draw < self.rates.drop + self.rates.reorder:
            self.counts["reorder"] += 1
            self.queue.after(self._rng.random() * LATE_SECONDS, target.process, f"reordered {label}", deliver)
            return True
        return False


def _count_as_sent(target: SimulatedSession, size: int) -> None:
    """Count a repeated message in its sender's window: a worker repeats a message by sending it, and each copy is used."""
    sender = target.other
    assert sender is not None and sender.flow is not None
    window = sender.flow._window
    with window.lock:
        window._bytes += size
        window._messages += 1


def carries_references(frame: bytearray) -> bool:
    """Return whether a request or a reply carries references; its receiver refuses a repetition of such a message."""
    return (
        frame[0] in (FrameKind.REQUEST, FrameKind.REPLY)
        and REFERENCES in decode(bytearray(frame), True, Incoming()).extras
    )
