"""Flow control of one session: drives the two machines of ``credits.py``, and drops messages that have become useless.

A message without room is queued. If its thread may block, it waits, and the message is not copied.
A thread that must not block (an event loop's, a reader's) queues a copy and goes on. The queue holds as many bytes of such
copies as the window, and ``QUEUE_FACTOR`` times as many messages; the next one fails at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ...base.errors import RpcError
from ...core.futures import Future, complete_once
from ..call_states import ADMITTED, NEW, QUEUED, WITHDRAWN
from ..threads.due_work import DueWork, Work
from ..threads.ioloop import may_block
from ..wire.control import Amount, encode_ask, encode_credit
from ..wire.messages import Outgoing, Queued
from .credits import Receipts, Window

if TYPE_CHECKING:
    from ...core.futures import ProgramClock
    from ..lanes.session import Session

QUEUE_FACTOR = 16
Resume = Callable[[Any], None]
T = TypeVar("T")


class Flow:
    """Messages in flight on one session, in both directions.

    Args:
        session: the session.
        limit: what may be in flight in each direction.
        clock: that of the deadlines of its messages.
        resume: called with each request that was held, when it may start.
    """

    def __init__(self, session: Session, limit: Amount, clock: ProgramClock, resume: Resume) -> None:
        self.clock = clock
        self.closed = False
        self._session = session
        self._resume = resume
        self._window = Window(limit)
        self.receipts = Receipts(self._send_credit)
        self._lock = self._window.lock  # never held while a frame is sent
        self._held: list[Work] = []  # starts of requests, for when no more answers are queued
        # It is stopped if the session has ended before it was open: then the work is done with the next session.
        self._due = DueWork()
        self.queued = self._window.queue  # not empty if messages are queued
        # Methods of the machines themselves: every message calls both, and most need nothing else.
        self.admit = self._window.admit
        self.used = self.receipts.used

    # -- sending

    def send(self, message: Outgoing, parts: list[Any], unsent: Callable[[Outgoing], None], waits: bool = True) -> bool:
        """Send a message for which ``admit`` had no room: now, or when there is room.

        Args:
            message: the message, with its ``size``.
            parts: its frame.
            unsent: called with the message if no thread waits with it, and the session closes before it is sent.
            waits: this thread waits with it, if it may block; if it may not, the queue is limited. False: never wait, no limit.

        Returns:
            False if the session is closed and the message was not sent.

        Raises:
            RpcError: the queue is full.
        """
        if self._has_room(message):
            message.dequeued()
            return self._transmit(message, parts)
        gate: Future[bool] | None = None
        if waits and may_block():
            gate = Future()
            gate.driver = self._session.reading
        else:
            # A copy is queued: this thread goes on, and its user may change the memory.
            parts = [b"".join(parts)]
        queued = message.waiting = Queued(parts, unsent, gate)
        if not self._enqueue(message, queued, waits and gate is None):
            return False
        if message.done():
            # It ended before it was queued, so the thread that ended it did not find it in the queue.
            self.cancel(message)
        return gate is None or self._wait(message, queued, gate)

    def _has_room(self, message: Outgoing) -> bool:
        with self._lock:
            size = message.size
            if room := self._window.has_room(size) and self._window.offer(None, size):
                message.state = ADMITTED
        self._ask()
        return room

    def _enqueue(self, message: Outgoing, queued: Queued, limited: bool) -> bool:
        with self._lock:
            if self.closed:
                return False
            if limited and self._full(message.size):
                raise RpcError(
                    f"{message.what} was not sent: too many messages wait for room on the way to that worker, sent by a "
                    f"thread that must not block; await some of the calls before you make more, or raise "
                    f"GrpcRpcBackendOptions(window_bytes=, window_messages=)"
                )
            message.session = self._session
            room = self._window.offer(message, message.size)
            message.state = ADMITTED if room else QUEUED
        self._ask()
        return not room or self._go(message, queued)

    def _full(self, size: int) -> bool:
        queued, limit = self._window.queued, self._window.limit
        return queued.messages > 0 and (
            queued.bytes + size > limit.bytes or queued.messages >= QUEUE_FACTOR * limit.messages
        )

    def _transmit(self, message: Outgoing, parts: list[Any]) -> bool:
        session = message.session = self._session
        return session.send(parts, message)

    def _go(self, message: Outgoing, queued: Queued) -> bool:
        """Let a message go that has room now: wake its thread, or send it if none waits. False if the session is closed."""
        if queued.gate is not None:
            complete_once(queued.gate, True)
            return True
        message.dequeued()
        message.waiting = None
        return self._transmit(message, queued.parts)

    def _wait(self, message: Outgoing, queued: Queued, gate: Future[bool]) -> bool:
        try:
            room = gate.wait()  # its deadline ends it, through ``cancel``
        finally:
            if not gate.done():  # Ctrl-C ended the wait
                self.cancel(message)
        message.waiting = None
        if message.done():
            self._give_up(message)
            return True
        return room and self._transmit(message, queued.parts)

    def cancel(self, message: Outgoing) -> bool:
        """Drop a message, in the queue or in the lane. Return True if nothing of it will arrive."""
        left = self._change(self._remove, message)
        queued = message.waiting
        if isinstance(queued, Queued) and queued.gate is not None:
            # Its thread sees that the message is done, and gives its room back.
            complete_once(queued.gate, message.state is ADMITTED)
        if not left and message.withdraw():
            message.state = WITHDRAWN
            self._refund(message.size)
            return True
        return left

    def _remove(self, message: Outgoing) -> bool:
        # lock held
        if left := self._window.remove(message):
            message.state = WITHDRAWN
        return left

    def put_back(self, message: Outgoing) -> None:
        """Give back the room of a message, if it has room and no lane has it."""
        message.waiting = None
        if message.state is ADMITTED:
            message.state = NEW
            self._refund(message.size)
        elif message.state is QUEUED:  # the session has ended
            message.state = NEW

    def _give_up(self, message: Outgoing) -> None:
        """Give back the room of a message that ended before it left."""
        if message.state is ADMITTED:
            message.state = WITHDRAWN
            self._refund(message.size)

    def _refund(self, size: int) -> None:
        if size:  # else it was not counted
            self._change(self._window.withdraw, size)

    # -- frames of the peer's flow control

    def credited(self, used: Amount) -> None:
        """Take a credit: the peer has used that much."""
        self._change(self._window.returned, used)

    def asked(self, goal: Amount) -> None:
        """Take a question: the peer wants to be told when this worker has used that much."""
        self.receipts.asked(goal)

    def _send_credit(self, used: Amount) -> None:
        self._session.send(encode_credit(used))

    # -- receiving

    def hold(self, request: Any) -> bool:
        """Keep a request back while answers are queued, so that no more are made for a caller that does not read them."""
        with self._lock:
            held = bool(self.queued) and not self.closed
            if held:
                self._held.append(partial(self._resume, request))
        return held

    # -- the end

    def move(self, fresh: Session) -> None:
        """Go on with the session ``fresh``, which has not started: the former one ended before it was open.

        It has sent nothing: all that is in flight are the frames that wait in it. They are given to ``fresh``.
        """
        with self._lock:
            former, self._session = self._session, fresh
            fresh.flow = self  # it stays that of ``former`` too: a thread may look a message up there
            for message in self._window.queue:
                message.session = fresh
            self._due.stopped = False
            self._window.forget_question()
        for frame, message in former.take_unsent():
            assert isinstance(message, Outgoing)
            message.session, message.waiting = fresh, None
            fresh.send([frame], message)
        self._carry_out()

    def close(self) -> None:
        """Drop what is queued: the session ended."""
        with self._lock:
            self.closed = True
            self._due.add(*map(self._start_of, [*self._window.going, *self._window.queue]), *self._held)
            self._window.clear()
            self._held = []
            self._due.stopped = False
        self._due.run()

    def counts(self) -> dict[str, Any]:
        """Return bytes and messages in flight and queued, for ``debug_info``."""
        with self._lock:
            return {"in_flight": tuple(self._window.in_flight), "queued": tuple(self._window.queued)}

    def traffic(self) -> tuple[Amount, Amount]:
        """Return what was sent, and what was received and used, since the session began."""
        with self._lock:
            return self._window.sent, self.receipts.amount()

    # -- work that is done without the lock

    def _change(self, change: Callable[..., T], *args: Any) -> T:
        """Call ``change`` with the lock held, and then do the work that is due because of it."""
        with self._lock:
            changed = change(*args)
            self._collect()
        self._carry_out()
        return changed

    def _collect(self) -> None:
        """Make messages due that have room now, and held requests if no answer is queued."""
        # lock held
        going = self._window.going
        while going:
            message = going.popleft()
            message.state = ADMITTED
            self._due.add(self._start_of(message))
        if not self.queued:
            self._due.add(*self._held)
            self._held = []

    def _carry_out(self) -> None:
        self._ask()
        self._due.run()

    def _start_of(self, message: Outgoing) -> Work:
        # lock held; the gate is taken now: the message has none any more when its thread has left
        queued: Queued = message.waiting
        return partial(self._start, message, queued) if queued.gate is None else partial(self._open, queued.gate)

    def _open(self, gate: Future[bool]) -> None:
        complete_once(gate, not self.closed)

    def _start(self, message: Outgoing, queued: Queued) -> bool:
        """Send a message that has room now, or drop it; return True if that is still to be done."""
        if self.closed:
            message.session, message.state = None, NEW
            queued.unsent(message)
        elif message.state is ADMITTED and message.done():
            self._give_up(message)
        elif message.state is ADMITTED and not self._go(message, queued):
            return self._not_sent(message, queued)
        return False

    def _not_sent(self, message: Outgoing, queued: Queued) -> bool:
        """Fail a message whose session has ended; return True if that was never open: it goes by the next session."""
        with self._lock:
            tried = message.session
            moves = not (self.closed or tried is None or tried.opened)
            message.state, message.waiting = ADMITTED if moves else NEW, queued
            if moves:
                self._due.stopped = tried is self._session  # else the next session is there already
        if not moves:
            queued.unsent(message)
        return moves

    def _ask(self) -> None:
        """Ask the peer to tell when it has used enough for more room, unless that is asked already."""
        with self._lock:
            goal = None if self.closed else self._window.ask()
        if goal is not None:
            self._session.send(encode_ask(goal))


# A thread that waits for room has a frame of it, whose ``message`` is what it sends.
ROOM_CODE = Flow._wait.__code__
