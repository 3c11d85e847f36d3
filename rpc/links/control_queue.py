"""Control queue: small messages reach one peer exactly once, although frames are lost or repeated on the way.

Each side of a pair of workers has one. It is a pure state machine: the driver gives it the time, the messages that arrived
and the acknowledgements, and sends the messages that it returns. Messages are delivered in *any* order: with an ordered
queue one lost frame would delay all that follow it, and no protocol here needs the order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush

from ..wire.control import ControlMessage
from .intervals import IntervalSet

ACKNOWLEDGE_SECONDS = 50e-3  # between two frames of acknowledgements that leave at once; others wait for the next frame


class ControlQueue:
    """Reliable delivery to and from one peer.

    Args:
        resend_after: seconds until the first repetition; the pause doubles with each.
        resend_cap: seconds of the longest pause.
        uncounted: topics left out of ``sent``, ``received`` and ``open`` (the shutdown protocol must not count itself).

    Attributes:
        round_trip: seconds from the latest message that was sent once to its acknowledgement; None before the first.
    """

    __slots__ = (
        "_acks", "_acks_left", "_cap", "_due", "_fresh", "_kept", "_lost", "_next_id", "_pause", "_seen", "_uncounted",
        "_unfinished", "received", "round_trip", "sent",
    )  # fmt: skip

    def __init__(self, resend_after: float = 1.0, resend_cap: float = 15.0, uncounted: Collection[int] = ()) -> None:
        if not 0 < resend_after <= resend_cap:
            raise ValueError(
                f"resend_after must be positive and at most resend_cap: you gave {resend_after} and {resend_cap}"
            )
        self._pause = resend_after
        self._cap = resend_cap
        self._uncounted = frozenset(uncounted)
        self._next_id = 0
        self._kept: dict[int, ControlMessage] = {}  # every message that is not acknowledged yet
        self._fresh: dict[int, ControlMessage] = {}  # those of them that were never sent
        # A heap of (when, id) for the others; entries of acknowledged ones may remain.
        self._due: list[tuple[float, int]] = []
        self._seen = IntervalSet()
        self._acks: list[int] = []
        self._acks_left = -ACKNOWLEDGE_SECONDS  # when the latest were taken
        self._lost = False
        self._unfinished = 0
        self.sent = 0
        self.received = 0
        self.round_trip: float | None = None

    @property
    def open(self) -> int:
        """Return how many counted messages the peer has not acknowledged."""
        return self._unfinished

    def post(self, payload: bytes, topic: int) -> ControlMessage:
        """Add a message for the peer; nothing is sent once the peer is lost."""
        message = ControlMessage(self._next_id, payload, topic)
        if self._lost:
            return message
        self._next_id += 1
        self._kept[message.id] = message
        self._fresh[message.id] = message
        if topic not in self._uncounted:
            self.sent += 1
            self._unfinished += 1
        return message

    def unsent(self, now: float) -> list[ControlMessage]:
        """Return the messages that were never sent, to be sent now; they count as sent from here on."""
        fresh, self._fresh = self._fresh, {}
        for message in fresh.values():
            self._schedule(message, now)
        return list(fresh.values())

    def due(self, now: float) -> list[ControlMessage]:
        """Return all messages to send now, for the first time or again; they count as sent from here on."""
        ready = self.unsent(now)
        while self._due and self._due[0][0] <= now:
            message = self._kept.get(heappop(self._due)[1])
            if message is not None:
                self._schedule(message, now)
                ready.append(message)
        return ready

    def _schedule(self, message: ControlMessage, now: float) -> None:
        # The exponent is bounded, because a float would overflow if a peer does not answer for long.
        pause = min(self._cap, self._pause * 2.0 ** min(message.attempts, 60))
        message.attempts += 1
        message.sent_at = now
        heappush(self._due, (now + pause, message.id))

    def next_due(self) -> float | None:
        """Return the time at which ``due`` returns something next: 0.0 for now, ``None`` if nothing waits."""
        if self._fresh:
            return 0.0
        while self._due and self._due[0][1] not in self._kept:
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def reconnected(self) -> None:
        """Make all messages that are not acknowledged due now, with the shortest pause: there is a new session."""
        self._fresh = dict(self._kept)
        self._due.clear()
        for message in self._fresh.values():
            message.attempts = 0

    def acknowledge(self, ids: Iterable[int], now: float = 0.0) -> list[ControlMessage]:
        """Forget the messages with these ids, because the peer has them, and return them.

        Unknown and repeated ids have no effect.

        Args:
            ids: those that the peer names.
            now: the time, for ``round_trip``; 0 if it is not measured.
        """
        acknowledged = []
        for id in ids:  # noqa: A001
            message = self._kept.get(id)
            if message is None:
                continue
            del self._kept[id]
            if message.topic not in self._uncounted:
                self._unfinished -= 1
            self._fresh.pop(id, None)  # acknowledged over the old session, after `reconnected`
            acknowledged.append(message)
            if now and message.attempts == 1:  # of one that was repeated it is not known which was answered
                self.round_trip = now - message.sent_at
        self._trim()
        return acknowledged

    def _trim(self) -> None:
        # Entries of acknowledged messages stay until their time comes; after a burst that would be many.
        if len(self._due) > 64 and len(self._due) > 2 * len(self._kept):
            self._due = [entry for entry in self._due if entry[1] in self._kept]
            heapify(self._due)

    def receive(self, id: int, topic: int | None = None) -> bool:  # noqa: A002
        """Note that a message arrived and is to be acknowledged; ignore it if its sender is lost.

        Returns:
            True if it is to be delivered, False if it is a repetition or its sender is lost.
        """
        if self._lost:
            return False
        self._acks.append(id)
        first = self._seen.add(id)
        if first and topic not in self._uncounted:
            self.received += 1
        return first

    def take_acks(self, now: float | None = None) -> list[int]:
        """Return the ids to acknowledge, once. If they are lost on the way, the peer repeats its messages.

        Args:
            now: the time: if others were acknowledged a moment ago, none are returned, because more may come. ``None`` for all.
        """
        if now is not None:
            if now - self._acks_left < ACKNOWLEDGE_SECONDS:
                return []
            self._acks_left = now
        acks, self._acks = self._acks, []
        return acks

    def peer_lost(self) -> list[ControlMessage]:
        """Forget everything, because the peer is lost; return the messages that it did not acknowledge."""
        unacknowledged = list(self._kept.values())
        self._lost = True
        self._kept.clear()
        self._fresh.clear()
        self._due.clear()
        self._acks.clear()
        self._unfinished = 0
        return unacknowledged
