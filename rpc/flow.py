"""Flow control of one connection: drives the two machines of ``credits.py``, and drops what nobody waits for any more.

A message without room is queued. Its thread waits with it, if it may block; the message's memory stays the user's meanwhile.
A thread that must not block (an event loop's, a reader's) queues a copy and goes on. Of these the queue holds as much as the
window again, and ``QUEUE_FACTOR`` times as many messages; the next one fails at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ..core.errors import RpcError
from ..core.futures import Future, complete_once
from .credits import Amount, Receipts, Window
from .lanes.base import Connection
from .lanes.ioloop import may_block
from .messages import Outgoing
from .wire.control import encode_ask, encode_credit

QUEUE_FACTOR = 16
Resume = Callable[[Any], None]


class Flow:
    """Messages in flight on one connection, in both directions.

    Args:
        connection: the connection.
        limit: what may be in flight in each direction.
        now: the agent's clock.
        resume: called with each request that was held, when it may start.
    """

    def __init__(self, connection: Connection, limit: Amount, now: Callable[[], float], resume: Resume) -> None:
        self.now = now
        self.closed = False
        self._connection = connection
        self._resume = resume
        self._window = Window(limit)
        self.receipts = Receipts(self._send_credit)
        self._lock = self._window.lock  # never held while a frame is sent
        self._held: list[Any] = []  # requests that start when our answers have room again
        self._due: deque[Any] = deque()  # messages that go now, and requests that start now
        self._ended = False  # the connection ended before it was open: what is due goes by the next one
        self._doing = threading.Lock()  # held by the thread that does them
        self.queued = self._window.queue  # true if something is
        # Methods of the machines themselves: every message calls both, and needs no more.
        self.take = self._window.take
        self.used = self.receipts.used

    # -- sending

    def send(self, message: Outgoing, parts: list[Any], unsent: Callable[[Outgoing], None], waits: bool = True) -> bool:
        """Send a message for which ``take`` had no room: now, or when there is room.

        Args:
            message: the message, with its ``size``.
            parts: its frame.
            unsent: called with it if no thread waits with it, and the connection closes before it goes.
            waits: this thread waits with it, if it may; and if it may not, the queue takes only so much.

        Returns:
            False if the connection is closed, and it was not sent.

        Raises:
            RpcError: the queue is full.
        """
        connection = message.connection = self._connection
        message.unsent, message.gate = unsent, None
        try:
            if self._has_room(message):
                message.dequeued()
                return connection.send(parts, message)
            if waits and may_block():
                message.parts, message.gate = parts, Future()
                message.gate.driver = self._connection.reading
            else:
                # This thread goes on, and its user may change the memory: a copy is queued.
                message.parts = [b"".join(parts)]
            if not self._enqueue(message, waits and message.gate is None):
                return False
            if message.done():
                self.cancel(message)  # it ended before it was queued: the thread that ended it did not find it there
            return message.gate is None or self._wait(message, message.gate)
        except BaseException:
            self._interrupted(message)
            raise

    def _interrupted(self, message: Outgoing) -> None:
        """Ctrl-C, say, in the thread that sends a message: nobody else would ask again, or use the room that it gets."""
        with self._lock:
            self._window.forget_question()
        if (gate := message.gate) is not None and not message.in_hand:
            self.cancel(message)
            gate.add_done_callback(lambda gate: self._refund(message.size) if gate.value() else None)

    def _has_room(self, message: Outgoing) -> bool:
        with self._lock:
            size = message.size
            message.in_hand = room = self._window.has_room(size) and self._window.offer(None, size)
            ask = self._window.ask()
        self._ask(ask)
        return room

    def _enqueue(self, message: Outgoing, limited: bool) -> bool:
        with self._lock:
            if self.closed:
                return False
            if limited and self._full(message.size):
                raise RpcError(
                    f"{message.what} was not sent: too many messages wait for room on the way to that worker, sent by a "
                    f"thread that must not block; await some of the calls before you make more, or raise "
                    f"GrpcRpcBackendOptions(window_bytes=, window_messages=)"
                )
            message.in_hand = room = self._window.offer(message, message.size)
            ask = self._window.ask()
        self._ask(ask)
        return not room or self._go(message)

    def _full(self, size: int) -> bool:
        queued, limit = self._window.queued, self._window.limit
        return queued.messages > 0 and (
            queued.bytes + size > limit.bytes or queued.messages >= QUEUE_FACTOR * limit.messages
        )

    def _go(self, message: Outgoing) -> bool:
        """Let a message go that has room now; if no thread waits with it, send it. False if the connection is closed."""
        if message.gate is not None:
            complete_once(message.gate, True)
            return True
        parts, message.parts = message.parts, []
        message.dequeued()
        if self._connection.send(parts, message):
            return True
        message.parts = parts
        return False

    def _wait(self, message: Outgoing, gate: Future[bool]) -> bool:
        message.in_hand = room = gate.wait()  # its deadline ends it, through ``cancel``
        message.gate = None
        parts, message.parts = message.parts, []
        if message.done():
            self.put_back(message)
            return True
        return room and self._connection.send(parts, message)

    def cancel(self, message: Outgoing) -> bool:
        """Drop a message, wherever it is. True if nothing of it has arrived, or will."""
        with self._lock:
            left, going = self._window.leave(message)
            ask = self._collect(going)
        if left:
            message.parts = []
            if message.gate is not None:
                complete_once(message.gate, False)
        self._carry_out(ask)
        if not left and self._connection.withdraw(message):
            self._refund(message.size)
            return True
        return left

    def put_back(self, message: Outgoing) -> None:
        """Give the room of a message back that has it and was given to no lane."""
        if message.in_hand:
            message.in_hand = False
            self._refund(message.size)

    def _refund(self, size: int) -> None:
        with self._lock:
            ask = self._collect(self._window.withdraw(size))
        self._carry_out(ask)

    # -- frames of the peer's flow control

    def credited(self, used: Amount) -> None:
        """Take a credit: the peer has used that much."""
        with self._lock:
            ask = self._collect(self._window.returned(used))
        self._carry_out(ask)

    def asked(self, goal: Amount) -> None:
        """Take a question: the peer wants to know when this worker has used that much."""
        self.receipts.asked(goal)

    def _send_credit(self, used: Amount) -> None:
        self._connection.send(encode_credit(used))

    # -- receiving

    def hold(self, request: Any) -> bool:
        """Keep a request back while answers are queued, so that a caller who does not read gets no more of them."""
        with self._lock:
            held = bool(self.queued) and not self.closed
            if held:
                self._held.append(request)
        return held

    # -- the end

    def move(self, fresh: Connection) -> None:
        """Go on with ``fresh``, which has not started: the connection ended before it was open, and nothing has left.

        What is in flight are the frames that wait there: they are given to ``fresh``.
        """
        with self._lock:
            former, self._connection = self._connection, fresh
            former.flow, fresh.flow = None, self
            for message in (*self._window.queue, *self._due):
                message.connection = fresh
            self._ended = False
            self._window.forget_question()
        for frame, message in former.take_unsent():
            assert isinstance(message, Outgoing)
            message.connection = fresh
            fresh.send([frame], message)
        with self._lock:
            ask = self._collect([])
        self._carry_out(ask)

    def close(self) -> None:
        """Drop what is queued: the connection ended."""
        with self._lock:
            self.closed = True
            waiting: list[Outgoing] = self._window.clear()
            held, self._held = self._held, []
        for message in waiting:
            message.connection = None
            if message.gate is not None:
                complete_once(message.gate, False)
            else:
                message.parts = []
                message.unsent(message)
        for request in held:
            self._resume(request)

    def counts(self) -> dict[str, Any]:
        """Return bytes and messages in flight and queued, for ``debug_info``."""
        with self._lock:
            return {"in_flight": tuple(self._window.in_flight), "queued": tuple(self._window.queued)}

    # -- work that is done without the lock

    def _collect(self, going: list[Any]) -> Amount | None:
        # lock held
        self._due += going
        if self._held and not self.queued:
            self._due += self._held
            self._held = []
        return None if self.closed else self._window.ask()

    def _carry_out(self, ask: Amount | None) -> None:
        self._ask(ask)
        # One thread does what is due, in a loop: in-process, a message makes room for the next before ``send`` returns, and
        # a long queue would be a deep recursion. A thread that comes meanwhile leaves it to that one, which looks again.
        while self._due and not self._ended and self._doing.acquire(blocking=False):
            try:
                while self._due and not self._ended:
                    self._do(self._due.popleft())
            finally:
                self._doing.release()

    def _do(self, due: Any) -> None:
        if not isinstance(due, Outgoing):
            self._resume(due)
        elif due.done() and due.gate is None:  # a thread that waits at the gate sees it itself
            due.parts = []
            self._refund(due.size)
        elif not self._go(due):
            if self.closed or self._connection.opened:
                due.unsent(due)
            else:
                self._due.appendleft(due)
                self._ended = True

    def _ask(self, goal: Amount | None) -> None:
        if goal is None:
            return
        try:
            self._connection.send(encode_ask(goal))
        except BaseException:  # Ctrl-C, say: nobody would ask again, and what is queued would wait for ever
            with self._lock:
                self._window.forget_question()
            raise
