"""Answers of the callee: what they are on the way out, and checks of what functions returned."""

from __future__ import annotations

import sys
from threading import Semaphore
from typing import Any

from ..core.errors import ArgumentTypeError, SerializationError
from ..core.futures import Future, thread_role
from .codec import Codec
from .flow import Flow
from .flows import Flows
from .lanes.base import Connection
from .messages import Outgoing
from .pool import ThreadPool
from .timers import Timer, Timers
from .wire.failures import describe_failure
from .wire.frames import encode
from .wire.header import Flag
from .wire.payload import pack

COPIED_BYTES = 64 * 1024  # a shorter answer without room is copied, and queued
MOST_WAITING = 4  # threads that wait for room for a longer one; that of a further thread is queued


class Reply(Outgoing):
    """Answer to a request. ``timer``, set when it is queued, drops it at the deadline of its call."""

    __slots__ = ("timer",)

    timer: Timer | None

    def dequeued(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class Replies:
    """Answers of one agent on their way out.

    Args:
        codec: shows them to the interceptors.
        flows: flow control of the connections.
        timers: for those that wait for room.
    """

    def __init__(self, codec: Codec, flows: Flows, timers: Timers) -> None:
        self._codec = codec
        self._flows = flows
        self._timers = timers
        self._places = Semaphore(MOST_WAITING)

    def send(self, reply: Reply, connection: Connection) -> None:
        """Send an answer on the connection of its request; it waits for room if the caller does not read."""
        self._codec.sending(reply)
        sent = False
        try:
            parts = encode(reply)
            flow: Flow = connection.flow or self._flows.of(connection)
            if flow.take(reply):
                sent = connection.send(parts)
            elif reply.size > COPIED_BYTES and self._may_wait():
                sent = self._wait(reply, parts, flow)
            else:
                sent = self._queue(reply, parts, flow)
        finally:
            if not sent:
                self._codec.not_delivered(reply)

    def _may_wait(self) -> bool:
        """Return whether this thread may wait for room; then it has a place, which ``_wait`` gives back."""
        return isinstance(thread_role.blocker, ThreadPool) and self._places.acquire(blocking=False)

    def _wait(self, reply: Reply, parts: list[Any], flow: Flow) -> bool:
        """Send an answer when there is room; this thread of the pool waits, and its place is free meanwhile."""
        reply.drop_content()
        reply.timer = self._timers.call_at(reply.deadline, flow.cancel, reply) if reply.deadline else None
        try:
            return flow.send(reply, parts, _known)
        finally:
            reply.dequeued()
            self._places.release()

    def _queue(self, reply: Reply, parts: list[Any], flow: Flow) -> bool:
        """Queue a copy of an answer."""
        # Any number may be queued: no further request of that caller starts meanwhile.
        reply.drop_content()
        deadline = reply.deadline
        reply.timer = self._timers.call_at(deadline, self._expire, reply, flow) if deadline else None
        return flow.send(reply, parts, self._unsent, waits=False)

    def _expire(self, reply: Reply, flow: Flow) -> None:
        if flow.cancel(reply):
            self._unsent(reply)

    def _unsent(self, reply: Outgoing) -> None:
        reply.dequeued()
        self._codec.not_delivered(reply)


def _known(reply: Outgoing) -> None:
    """Do nothing: the thread that waits with the answer sees that it was not sent."""


def label_result(value: Any) -> list[tuple[str, Any]]:
    """Name the parts of an answer, for error messages."""
    return [("the result", value)]


def pack_failure(reply: Reply, error: BaseException, worker: str, limit: int) -> None:
    """Make a reply that carries an exception; it is replaced by a small one if it is too large.

    Args:
        reply: the reply.
        error: the exception.
        worker: name of the worker that answers.
        limit: most bytes of a message.
    """
    reply.flags |= Flag.ERROR
    description = describe_failure(error, worker)
    if sum(len(part) for part in description if part) > limit:
        description = describe_failure(_too_large(description[1]), worker)
    # No limit: an error that is too large for it, whatever it is, was replaced above.
    pack(reply, description, (), True, lambda body: [("the exception", body)], sys.maxsize)
    reply.flags &= ~Flag.PLAIN


def _too_large(kind: str) -> SerializationError:
    return SerializationError(
        f"the call raised {kind}, which is larger than GrpcRpcBackendOptions(max_message_bytes=) of the callee; raise it there"
    )


def check_future(result: Any) -> Future[Any]:
    """Return the result of a function marked with ``async_execution``, which must be a future.

    Raises:
        ArgumentTypeError: it is no future.
    """
    if not isinstance(result, Future):
        raise ArgumentTypeError(
            f"a function marked with async_execution must return a Future; it returned {type(result).__name__}"
        )
    return result
