"""Answers of the callee: values and exceptions, each a message, and answers of ``None``, of which one message has several."""

from __future__ import annotations

from collections.abc import Callable, Sized
from threading import Semaphore
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.futures import thread_role
from ..threads.pool import MANY_REQUESTS, ThreadPool
from ..wire.control import encode_done, encode_ids
from ..wire.frames import encode
from ..wire.header import FrameKind
from ..wire.messages import Outgoing, Topic

if TYPE_CHECKING:
    from ..flow.flow import Flow
    from ..lanes.session import Session
    from ..links.control_channel import ControlChannel
    from ..links.peer import Peer
    from ..threads.timers import Timer, Timers
    from .codec import Codec

COPIED_BYTES = 64 * 1024  # a shorter answer that has no room is copied and queued
MOST_WAITING_REPLIES = 4  # threads that wait for room with a longer answer; the answer of another thread is queued
MOST_TOGETHER = 64  # so many answers of ``None`` leave without waiting for more
Unsent = Callable[[Outgoing], None]
T = TypeVar("T")
WARNINGS = 4  # number of the extra of an answer that has the warnings
WarningRow = tuple[str, str, str, str, int]  # module and name of a warning's class, its text, file and line


class Reply(Outgoing):
    """Answer to a request.

    Attributes:
        deadline: time after which no call waits for it, in the agent's seconds; 0 for none.
        timer: drops the answer at the deadline of its call; set when the answer is queued.
    """

    __slots__ = ("deadline", "timer")

    kind = FrameKind.REPLY
    deadline: float
    timer: Timer | None

    def ends(self) -> float:
        return self.deadline

    def dequeued(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class Replies:
    """Sender of one agent's answers.

    Args:
        codec: tells the interceptors of those that were not sent.
        timers: for answers that wait for room.
    """

    def __init__(self, codec: Codec, timers: Timers) -> None:
        self._codec = codec
        self._timers = timers
        self._places = Semaphore(MOST_WAITING_REPLIES)

    def send(self, reply: Reply, session: Session) -> None:
        """Send an answer that is packed on the session of its request. It waits for room while the caller does not read."""
        sent = False
        try:
            parts = encode(reply)
            flow: Flow = session.flow
            try:
                if flow.admit(reply):
                    sent = session.send(parts)
                elif reply.size > COPIED_BYTES and self._may_wait():
                    sent = self._wait(reply, parts, flow)
                else:
                    sent = self._queue(reply, parts, flow)
            except MemoryError:  # nothing of it arrives: the room that it took is for the error that is sent instead
                flow.put_back(reply)
                raise
        finally:
            if not sent:
                self._codec.not_delivered(reply)

    def _may_wait(self) -> bool:
        """Return whether this thread may wait for room. If so it has taken a place, which ``_wait`` gives back."""
        return isinstance(thread_role.blocker, ThreadPool) and self._places.acquire(blocking=False)

    def _wait(self, reply: Reply, parts: list[Any], flow: Flow) -> bool:
        """Send an answer when there is room; this thread of the pool waits, and another may run meanwhile."""
        try:
            return self._send_later(reply, parts, flow, _known, waits=True)
        finally:
            reply.dequeued()
            self._places.release()

    def _queue(self, reply: Reply, parts: list[Any], flow: Flow) -> bool:
        """Queue a copy of an answer. The queue needs no limit: no more requests of that caller start meanwhile."""
        return self._send_later(reply, parts, flow, self._unsent, waits=False)

    def _send_later(self, reply: Reply, parts: list[Any], flow: Flow, unsent: Unsent, waits: bool) -> bool:
        """Send an answer when there is room, unless its deadline comes first; ``unsent`` is called if it does not go."""
        reply.timer = None
        reply.drop_content()
        if reply.deadline:
            self._expire_at(reply, flow, unsent)
        return flow.send(reply, parts, unsent, waits)

    def _expire_at(self, reply: Reply, flow: Flow, unsent: Unsent) -> None:
        reply.timer = self._timers.at(self._timers.program.real(reply.deadline), self._expire, reply, flow, unsent)

    def _expire(self, reply: Reply, flow: Flow, unsent: Unsent) -> None:
        if self._timers.program.now() < reply.deadline:  # the clock stood still
            self._expire_at(reply, flow, unsent)
        elif flow.cancel(reply):
            unsent(reply)

    def _unsent(self, reply: Outgoing) -> None:
        reply.dequeued()
        self._codec.not_delivered(reply)


def _known(reply: Outgoing) -> None:
    """Do nothing: a thread that waits with the answer learns by ``Flow.send`` that it was not sent; nothing keeps others."""


class DoneAnswers:
    """Answers of ``None`` of one agent: ids of calls, so that several that leave at the same time are one message.

    An answer for which a thread waits is lost with its session, as its call then fails: a frame that is not acknowledged is
    enough. One that no thread waits for must arrive whatever happens to the session: it is a control message.

    Args:
        control: for answers that no thread waits for.
        timers: for answers that wait for others.
        waiting: requests that have not begun. While there are many, answers wait up to a millisecond to leave together.
    """

    def __init__(self, control: ControlChannel, timers: Timers, waiting: Sized) -> None:
        self._control = control
        self._waiting = waiting
        self._together = timers.together(self._send_together, hurried=True)
        self._soon = timers.together(self._send_soon)

    def send(self, session: Session, call_id: int) -> None:
        """Answer a call on the session of its request; with others in one message, while many requests wait."""
        together, waiting = self._together, len(self._waiting)
        if waiting <= MANY_REQUESTS and not together.items:
            self._send(session, [call_id])
            return
        together.add((session, call_id))
        if not waiting or len(together.items) >= MOST_TOGETHER:
            together.flush()

    def send_soon(self, peer: Peer, call_id: int) -> None:
        """Answer a call later, by a control message with others: no thread waits for the answer, and it cannot be lost."""
        self._soon.add((peer, call_id))

    def _send(self, session: Session, call_ids: list[int]) -> None:
        parts = [frame := encode_done(call_ids)]
        done = Reply(0, 0, 0.0, -1)
        done.deadline = 0.0
        done.size = len(frame)
        flow = session.flow
        if flow.admit(done):
            session.send(parts)
        else:  # the caller does not read; no further request of it starts meanwhile
            done.timer = None
            flow.send(done, parts, _known, waits=False)

    def _send_together(self, answers: list[tuple[Session, int]]) -> None:
        for session, ids in _grouped(answers).items():
            self._send(session, ids)

    def _send_soon(self, answers: list[tuple[Peer, int]]) -> None:
        for peer, ids in _grouped(answers).items():
            self._control.post(peer, Topic.DONE, encode_ids(ids), hurried=False)


def _grouped(answers: list[tuple[T, int]]) -> dict[T, list[int]]:
    groups: dict[T, list[int]] = {}
    for receiver, call_id in answers:
        groups.setdefault(receiver, []).append(call_id)
    return groups


def label_result(value: Any) -> list[tuple[str, Any]]:
    """Return the parts of an answer and their names in error messages."""
    return [("the result", value)]
