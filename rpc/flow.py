"""Flow control of one connection: drives the two machines of ``credits.py``, and lets go of what nobody waits for any more.

A message that has no room waits in line. Its thread waits with it, if it may block; the message's memory stays the
user's meanwhile. A thread that must not block (an event loop's, a reader's) leaves a copy in line and goes on. That line
holds as much as the window again, and ``QUEUE_FACTOR`` times as many messages; the next one fails at once.
"""

from __future__ import annotations

import asyncio
import threading
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
Work = tuple[list["Departure"], Amount | None, list[Any]]  # messages to send, what to ask, requests to start


class State:
    """Where a departure is."""

    NEW = 0
    IN_LINE = 1
    SENDING = 2  # it has room; a thread hands it to the connection, or is about to
    SENT = 3
    DOOMED = 4  # nobody waits for it any more, and a thread hands it to the connection this instant
    OVER = 5  # nobody waits for it any more


class Departure(Ticket):
    """A request or an answer on its way out."""

    __slots__ = ("connection", "deadline", "gate", "parts", "size", "state")

    limited = True  # the line takes only so many from threads that do not wait with them

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self.deadline = deadline  # 0 for none
        self.connection: Connection | None = None  # the one that it was handed to
        self.gate: Future[None] | None = None  # where its thread waits
        self.parts: list[Any] = []
        self.size = 0
        self.state = State.NEW

    def restamp(self, head: bytes) -> bytes:
        """The header with the seconds that are left now: time in an outbox counts."""
        flow = self.connection.flow if self.connection is not None else None
        if flow is None or not self.deadline:
            return head
        return restamp(head, max(self.deadline - flow.now(), 1e-3))

    def over(self) -> bool:
        """Whether nobody waits for it any more."""
        return False

    def unsent(self) -> None:
        """It stood in line, and its connection closed."""


class Flow:
    """What is under way on one connection, in both directions."""

    def __init__(self, connection: Connection, limit: Amount, now: Callable[[], float], resume: Resume) -> None:
        self.now = now
        self.closed = False
        self._connection = connection
        self._resume = resume
        self._lock = threading.Lock()  # never held while a frame is sent
        self._window = Window(limit)
        self._ledger = Ledger()
        self._held: list[Any] = []  # requests that start when our answers have room again

    # -- sending

    def send(self, departure: Departure, parts: list[Any], may_block: Callable[[], bool]) -> bool:
        """Send a message, or put it in line, and wait there with it if this thread may.

        Returns:
            False if the connection is closed, and it was not sent.

        Raises:
            RpcError: the line is full.
        """
        departure.size = sum(map(len, parts))
        if self._enter(departure, parts, False, False):
            return self._dispatch(departure)
        block = may_block()
        if block:
            self._enter(departure, parts, True, True)
        else:
            # This thread goes on, and its user may change the memory: a copy stands in line.
            self._enter(departure, [b"".join(parts)], True, False)
        if departure.state == State.IN_LINE and departure.over():
            self.give_up(departure)  # it ended before it stood in line, where whoever ended it would have found it
        if departure.gate is not None:
            departure.gate.wait()  # ``Caller.tick`` ends it at the deadline, through ``give_up``
        elif departure.state == State.IN_LINE:
            return True
        return self._dispatch(departure)

    def _enter(self, departure: Departure, parts: list[Any], queue: bool, block: bool) -> bool:
        with self._lock:
            departure.state, departure.gate = State.NEW, None
            if self.closed:
                return True
            room = self._window.has_room(departure.size)
            if not room and not queue:
                return False
            if room or block or not departure.limited or self._queues(departure.size):
                departure.connection, departure.parts = self._connection, parts
                self._window.offer(departure, departure.size)
                departure.state = State.SENDING if room else State.IN_LINE
                departure.gate = None if room or not block else Future()
            ask = self._window.ask()
        if ask is not None:
            self._connection.send(encode_ask(ask))
        if departure.state == State.NEW:
            raise RpcError(
                "too many messages wait for room on the way to their worker, sent by a thread that must not block; await "
                "some of the calls before you make more, or raise GrpcRpcBackendOptions(window_bytes=, window_messages=)"
            )
        return True

    def _queues(self, size: int) -> bool:
        line, limit = self._window.line, self._window.limit
        return not line.messages or (line.bytes + size <= limit.bytes and line.messages < QUEUE_FACTOR * limit.messages)

    def _dispatch(self, departure: Departure) -> bool:
        """Hand a message that has room to the connection. False: it is closed."""
        if departure.state in (State.NEW, State.OVER):
            return departure.state == State.OVER
        parts, departure.parts = departure.parts, []
        sent = departure.state == State.SENDING and self._connection.send(parts, departure)
        with self._lock:
            doomed = departure.state == State.DOOMED
            departure.state = State.OVER if doomed else State.SENT if sent else State.NEW
        if not sent:
            self._refund(departure)
        elif doomed:
            self._take_back(departure)
        return sent or doomed

    def give_up(self, departure: Departure) -> bool:
        """Let go of a message, wherever it is. True if nothing of it has arrived, or will."""
        with self._lock:
            state = departure.state
            departure.state = State.DOOMED if state == State.SENDING else State.OVER
            departure.parts = [] if state == State.IN_LINE else departure.parts
            left, going = self._window.leave(departure) if state == State.IN_LINE else (False, [])
            work = self._collect(going)
        if left and departure.gate is not None:
            complete_once(departure.gate)
        self._carry_out(work)
        return left or (state == State.SENT and self._take_back(departure))

    def _take_back(self, departure: Departure) -> bool:
        if not self._connection.withdraw(departure):
            return False
        self._refund(departure)
        return True

    def _refund(self, departure: Departure) -> None:
        with self._lock:
            work = self._collect(self._window.withdraw(departure.size))
        self._carry_out(work)

    # -- what the peer says

    def credited(self, used: Amount) -> None:
        """The peer has used that much."""
        with self._lock:
            work = self._collect(self._window.returned(used))
        self._carry_out(work)

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
        if not self._window.blocked:
            return False
        with self._lock:
            held = self._window.blocked and not self.closed
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
                departure.state, departure.parts = State.NEW, []
        for departure in waiting:
            if departure.gate is not None:
                complete_once(departure.gate)
            else:
                departure.unsent()
        for request in held:
            self._resume(request)

    def counts(self) -> dict[str, Any]:
        """For ``debug_info``."""
        with self._lock:
            return {"under_way": tuple(self._window.under_way), "in_line": tuple(self._window.line)}

    # -- work that is done without the lock

    def _collect(self, going: list[Any]) -> Work:
        # lock held
        for departure in going:
            departure.state = State.SENDING
        held: list[Any] = []
        if self._held and not self._window.blocked:
            held, self._held = self._held, []
        return going, None if self.closed else self._window.ask(), held

    def _carry_out(self, work: Work) -> None:
        going, ask, held = work
        if ask is not None:
            self._connection.send(encode_ask(ask))
        for departure in going:
            if departure.gate is not None:
                complete_once(departure.gate)
            elif not self._dispatch(departure):
                departure.unsent()
        for request in held:
            self._resume(request)


def may_block() -> bool:
    """Whether this thread may wait: not an event loop's, nor one that refuses (``core.futures.Blocker``)."""
    if thread_role.blocker is not None:
        return not isinstance(thread_role.blocker, RefusesToBlock)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False
