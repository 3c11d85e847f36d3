"""Flow control of one connection: drives the two machines of ``credits.py``, and lets go of what nobody waits for any more.

A message that has no room waits in line. Its thread waits with it, if it may block; the message's memory stays the
user's meanwhile. A thread that must not block (an event loop's, a reader's) leaves a copy in line and goes on. That line
holds as much as the window again, and ``QUEUE_FACTOR`` times as many messages; the next one fails at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ..core.errors import RpcError
from ..core.futures import Future, complete_once, thread_role
from .credits import Amount, Ledger, Window
from .lanes.base import Connection, Ticket
from .lanes.ioloop import RefusesToBlock
from .wire.control import encode_ask, encode_credit
from .wire.frames import restamp

QUEUE_FACTOR = 16


Resume = Callable[[Any], None]


class Departure(Ticket):
    """A request or an answer on its way out. What it needs in line, ``Flow.queue`` sets."""

    __slots__ = ("connection", "deadline", "gate", "parts", "size", "unsent", "what")

    gate: Future[bool] | None  # where its thread waits: True when there is room, False when it does not go at all
    parts: list[Any]
    what: object  # its text names it in errors
    unsent: Callable[[], None]  # tells who sent it that it stood in line without a thread, and did not go

    def __init__(self, deadline: float = 0.0) -> None:
        super().__init__()
        self.deadline = deadline  # 0 for none
        self.connection: Connection | None = None  # the one that it was handed to
        self.size = 0

    def restamp(self, head: bytes) -> bytes:
        """The header with the seconds that are left now: time in an outbox counts."""
        flow = self.connection.flow if self.connection is not None else None
        if flow is None or not self.deadline:
            return head
        return restamp(head, max(self.deadline - flow.now(), 1e-3))

    def over(self) -> bool:
        """Whether nobody waits for it any more."""
        return False

    def leave_line(self) -> None:
        """Note that it goes now, without a thread that waited with it."""


class Flow:
    """Messages under way on one connection, in both directions."""

    def __init__(self, connection: Connection, limit: Amount, now: Callable[[], float], resume: Resume) -> None:
        self.now = now
        self.closed = False
        self._connection = connection
        self._resume = resume
        self._lock = threading.Lock()  # never held while a frame is sent
        self._window = Window(limit)
        self._ledger = Ledger()
        self._held: list[Any] = []  # requests that start when our answers have room again
        self._due: deque[Any] = deque()  # messages that go now, and requests that start now
        self._doing = threading.Lock()  # held by the thread that does them
        self.in_line = self._window.line  # true if something is

    # -- sending

    def take(self, size: int) -> bool:
        """Take room for a message, which the caller sends then; if there is none to spare, ``queue`` it."""
        with self._lock:
            return self._window.take(size)

    def queue(
        self,
        departure: Departure,
        parts: list[Any],
        size: int,
        unsent: Callable[[], None],
        limited: bool = True,
        waits: bool = True,
    ) -> bool:
        """Send a message, or put it in line, and wait there with it if this thread may.

        Args:
            departure: names it.
            parts: its frame.
            size: bytes of the frame.
            unsent: called if no thread waits with the message, and the connection closes before it goes.
            limited: whether the line takes only so many messages that no thread waits with.
            waits: whether this thread waits, if it may.

        Returns:
            False if the connection is closed, and it was not sent.

        Raises:
            RpcError: the line is full.
        """
        departure.connection, departure.size, departure.unsent = self._connection, size, unsent
        if self._has_room(size):
            return self._connection.send(parts, departure)
        if waits and may_block():
            departure.parts, departure.gate = parts, Future()
        else:
            # This thread goes on, and its user may change the memory: a copy stands in line.
            departure.parts, departure.gate = [b"".join(parts)], None
        if not self._stand(departure, limited and departure.gate is None):
            return False
        if departure.over():
            self.give_up(departure)  # it ended before it stood in line, where whoever ended it would have found it
        return departure.gate is None or self._wait(departure, departure.gate)

    def _has_room(self, size: int) -> bool:
        with self._lock:
            room = self._window.has_room(size) and self._window.offer(None, size)
            ask = self._window.ask()
        self._ask(ask)
        return room

    def _stand(self, departure: Departure, limited: bool) -> bool:
        with self._lock:
            if self.closed:
                return False
            if limited and self._full(departure.size):
                raise RpcError(
                    f"{departure.what} was not sent: too many messages wait for room on the way to that worker, sent by a "
                    f"thread that must not block; await some of the calls before you make more, or raise "
                    f"GrpcRpcBackendOptions(window_bytes=, window_messages=)"
                )
            room = self._window.offer(departure, departure.size)
            ask = self._window.ask()
        self._ask(ask)
        return not room or self._go(departure)

    def _full(self, size: int) -> bool:
        line, limit = self._window.in_line, self._window.limit
        return line.messages > 0 and (line.bytes + size > limit.bytes or line.messages >= QUEUE_FACTOR * limit.messages)

    def _go(self, departure: Departure) -> bool:
        """A message has room now. Without a thread of its own, this one sends it; False if the connection is closed."""
        if departure.gate is not None:
            complete_once(departure.gate, True)
            return True
        parts, departure.parts = departure.parts, []
        departure.leave_line()
        return self._connection.send(parts, departure)

    def _wait(self, departure: Departure, gate: Future[bool]) -> bool:
        try:
            room = gate.wait()  # its deadline ends it, through ``give_up``
        except BaseException:  # Ctrl-C, say. If it has room this very moment, nobody would use that
            self.give_up(departure)
            gate.add_done_callback(lambda gate: self._refund(departure.size) if gate.value() else None)
            raise
        parts, departure.parts = departure.parts, []
        if departure.over():
            if room:
                self._refund(departure.size)
            return True
        return room and self._connection.send(parts, departure)

    def give_up(self, departure: Departure) -> bool:
        """Let go of a message, wherever it is. True if nothing of it has arrived, or will."""
        with self._lock:
            left, going = self._window.leave(departure)
            ask = self._collect(going)
        if left:
            departure.parts = []
            if departure.gate is not None:
                complete_once(departure.gate, False)
        self._carry_out(ask)
        if not left and self._connection.withdraw(departure):
            self._refund(departure.size)
            return True
        return left

    def _refund(self, size: int) -> None:
        with self._lock:
            ask = self._collect(self._window.withdraw(size))
        self._carry_out(ask)

    # -- what the peer says

    def credited(self, used: Amount) -> None:
        """The peer has used that much."""
        with self._lock:
            ask = self._collect(self._window.returned(used))
        self._carry_out(ask)

    def asked(self, goal: Amount) -> None:
        """The peer wants to know when we have used that much."""
        with self._lock:
            credit = self._ledger.asked(goal)
        if credit is not None:
            self._connection.send(encode_credit(credit))

    # -- receiving

    def used(self, size: int) -> None:
        """A message of that size was used, or dropped."""
        with self._lock:
            credit = self._ledger.used(size)
        if credit is not None:
            self._connection.send(encode_credit(credit))

    def hold(self, request: Any) -> bool:
        """Keep a request back while answers stand in line, so that a caller who does not read gets no more of them."""
        with self._lock:
            held = bool(self.in_line) and not self.closed
            if held:
                self._held.append(request)
        return held

    # -- the end

    def close(self) -> None:
        """The connection ended: nothing stands in line any more."""
        with self._lock:
            self.closed = True
            waiting: list[Departure] = self._window.clear()
            held, self._held = self._held, []
        for departure in waiting:
            departure.connection = None
            if departure.gate is not None:
                complete_once(departure.gate, False)
            else:
                departure.parts = []
                departure.unsent()
        for request in held:
            self._resume(request)

    def counts(self) -> dict[str, Any]:
        """For ``debug_info``."""
        with self._lock:
            return {"under_way": tuple(self._window.under_way), "in_line": tuple(self._window.in_line)}

    # -- work that is done without the lock

    def _collect(self, going: list[Any]) -> Amount | None:
        # lock held
        self._due += going
        if self._held and not self.in_line:
            self._due += self._held
            self._held = []
        return None if self.closed else self._window.ask()

    def _carry_out(self, ask: Amount | None) -> None:
        self._ask(ask)
        # One thread does what is due, in a loop: in-process, a message makes room for the next before ``send`` returns, and
        # a long line would be a deep recursion. Whoever comes meanwhile leaves it to that thread, which looks again.
        while self._due and self._doing.acquire(blocking=False):
            try:
                while self._due:
                    self._do(self._due.popleft())
            finally:
                self._doing.release()

    def _do(self, due: Any) -> None:
        if not isinstance(due, Departure):
            self._resume(due)
        elif not self._go(due):
            due.unsent()

    def _ask(self, goal: Amount | None) -> None:
        if goal is not None:
            self._connection.send(encode_ask(goal))


def may_block() -> bool:
    """Whether this thread may wait: not an event loop's, nor one that refuses (``core.futures.Blocker``)."""
    if thread_role.blocker is not None:
        return not isinstance(thread_role.blocker, RefusesToBlock)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False
