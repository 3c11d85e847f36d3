"""Credits: how many bytes and messages one direction of a session may have in flight. Two state machines without I/O.

A message is *in flight* from when it is sent until its receiver has used it: a request until it starts or is dropped, an
answer until it is opened or dropped. ``Window``, at the sender, lets a message go while there is room, and otherwise
queues it. ``Receipts``, at the receiver, counts the messages that were used. Both count from the session's beginning, so
credits and questions may be repeated, and may overtake one another.

Questions about a worker, reads and writes of buffers, and their answers are in no window: their ``size`` is 0 for both
machines.

Credits cost nothing while there is room. A sender whose window is half full *asks*: the receiver is to tell when it has used
a given amount. So a steady stream never stops, and a single call causes no message of flow control.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ..call_states import ADMITTED
from ..wire.control import Amount
from ..wire.messages import OUTSIDE_WINDOWS


class Window:
    """Sender's half. Keys name messages; ``ask`` must be called after each event but ``admit``.

    ``admit`` holds the lock itself; for all other methods the caller does.

    Attributes:
        queue: messages without room and their sizes, in the order in which they came.
        going: messages that have left the queue because there is room; the driver takes them out and sends them in this order.
    """

    __slots__ = (
        "_asked",
        "_bytes",
        "_messages",
        "_queued_bytes",
        "_returned",
        "_spare_bytes",
        "_spare_messages",
        "going",
        "limit",
        "lock",
        "queue",
    )

    def __init__(self, limit: Amount) -> None:
        self.limit = limit
        self.lock = threading.Lock()
        self.queue: dict[Any, int] = {}
        self.going: deque[Any] = deque()
        self._queued_bytes = 0
        self._bytes = 0  # sent so far, without messages that were withdrawn
        self._messages = 0
        self._asked: Amount | None = None  # the receiver will tell when it has used this much
        self._note_returned(Amount(0, 0))

    @property
    def in_flight(self) -> Amount:
        """Amount that was sent, less the amount of which the sender knows that it was used."""
        return Amount(self._bytes - self._returned.bytes, self._messages - self._returned.messages)

    @property
    def sent(self) -> Amount:
        """Amount that was sent so far."""
        return Amount(self._bytes, self._messages)

    @property
    def queued(self) -> Amount:
        """Amount that waits for room."""
        return Amount(self._queued_bytes, len(self.queue))

    def admit(self, message: Any) -> bool:
        """Count a message as sent and return True, if at most half of the window is used then; it nearly always is.

        Args:
            message: has a ``method`` and a ``size``; its state becomes ``ADMITTED``.
        """
        if message.method in OUTSIDE_WINDOWS:
            message.size, message.state = 0, ADMITTED
            return True
        with self.lock:
            size = message.size
            sent, messages = self._bytes + size, self._messages + 1
            if self.queue or sent > self._spare_bytes or messages > self._spare_messages:
                return False
            self._bytes, self._messages, message.state = sent, messages, ADMITTED
            return True

    def has_room(self, size: int) -> bool:
        """Return whether a message of that size could be sent at once."""
        return not self.queue and self._fits(size)

    def offer(self, key: Any, size: int) -> bool:
        """Count a message as sent and return True if there is room; otherwise queue it."""
        if self.has_room(size):
            self._bytes += size
            self._messages += 1
            return True
        self.queue[key] = size
        self._queued_bytes += size
        return False

    def returned(self, used: Amount) -> None:
        """Take a credit: the receiver has used that much so far."""
        known = self._returned
        self._note_returned(Amount(max(known.bytes, used.bytes), max(known.messages, used.messages)))
        self._asked = None  # it may be the answer to an older question: then ``ask`` repeats the latest
        self._advance()

    def withdraw(self, size: int) -> None:
        """Take back a message that was counted as sent and will not arrive."""
        self._bytes -= size
        self._messages -= 1
        self._advance()

    def remove(self, key: Any) -> bool:
        """Remove a message from the queue; return whether it was there."""
        if key not in self.queue:
            return False
        self._queued_bytes -= self.queue[key]
        del self.queue[key]
        self._advance()
        return True

    def ask(self) -> Amount | None:
        """Return the count to ask the receiver for, if there is something new to ask."""
        if not self.queue and self._bytes <= self._spare_bytes and self._messages <= self._spare_messages:
            return None
        limit, asked = self.limit, self._asked
        first = next(iter(self.queue.values()), 0)
        room = max(0, min(limit.bytes // 2, limit.bytes - first))
        goal = Amount(self._bytes - room, self._messages - limit.messages // 2 if room else self._messages)
        if asked is not None:
            if asked.bytes <= goal.bytes and asked.messages <= goal.messages:
                return None  # the answer to that comes first
            goal = Amount(min(asked.bytes, goal.bytes), min(asked.messages, goal.messages))
        self._asked = goal
        return goal

    def forget_question(self) -> None:
        """Note that the latest question was not sent: ``ask`` repeats it."""
        self._asked = None

    def clear(self) -> None:
        """Empty the queue, because the session ended."""
        self.queue.clear()
        self.going.clear()
        self._queued_bytes = 0

    def _note_returned(self, used: Amount) -> None:
        self._returned = used
        # When more than this was sent, more than half of the window is used.
        self._spare_bytes = used.bytes + self.limit.bytes // 2
        self._spare_messages = used.messages + self.limit.messages // 2

    def _fits(self, size: int) -> bool:
        in_flight = self._bytes - self._returned.bytes
        if not in_flight:
            return True  # also for a message that is larger than the window
        room = in_flight + size <= self.limit.bytes
        return room and self._messages - self._returned.messages < self.limit.messages

    def _advance(self) -> None:
        while self.queue:
            key, size = next(iter(self.queue.items()))
            if not self._fits(size):
                break
            del self.queue[key]
            self._queued_bytes -= size
            self._bytes += size
            self._messages += 1
            self.going.append(key)


class Receipts:
    """Receiver's half: counts the messages that were used, and calls ``tell(used)`` when the amount asked for is reached.

    ``tell`` is called without the lock.

    Attributes:
        messages: how many messages were used.
    """

    __slots__ = ("_asked", "_bytes", "_lock", "_tell", "messages")

    def __init__(self, tell: Callable[[Amount], object]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._bytes = 0
        self.messages = 0
        self._asked: Amount | None = None

    def amount(self) -> Amount:
        """Return how much was used so far."""
        with self._lock:
            return Amount(self._bytes, self.messages)

    def used(self, size: int) -> None:
        """Count a message of that size as used; it was used or dropped."""
        if not size:
            return  # it is in no window
        with self._lock:
            self._bytes += size
            self.messages += 1
            if self._asked is None:
                return
            used = self._answer()
        if used is not None:
            self._tell(used)

    def asked(self, goal: Amount) -> None:
        """Tell the sender when that much was used. Of several questions the one for the smallest amount counts."""
        with self._lock:
            asked = self._asked
            self._asked = goal if asked is None else Amount(min(asked[0], goal[0]), min(asked[1], goal[1]))
            used = self._answer()
        if used is not None:
            self._tell(used)

    def _answer(self) -> Amount | None:
        # lock held
        used = Amount(self._bytes, self.messages)
        if self._asked is None or not _reached(used, self._asked):
            return None
        self._asked = None
        return used


def _reached(count: Amount, goal: Amount) -> bool:
    return count.bytes >= goal.bytes and count.messages >= goal.messages
