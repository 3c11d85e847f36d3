"""News of contexts that have ended: each worker that must hear of it gets it on a request, or by a control message.

A control message wakes its receiver, which has nothing else to do then, and its acknowledgement wakes the sender. In a chain
of workers, each of which sleeps while others work, that was a quarter of all wake-ups. So news that has waited for a moment
rides on the next request of a context to that worker. A request may be lost, so the same news also leaves as a control
message, which arrives exactly once: soon if it did not ride, and otherwise later, when it covers that of many contexts.
"""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING

from ..proto.autograd_dist_pb2 import ContextMessage, ContextMessages
from .lifetimes import Message, Release, add_message
from .numbers import GradientTopic

if TYPE_CHECKING:
    from ..rpc.extend import Agent

RELEASE, ORPHAN = 1, 2  # kinds of control messages
# News waits so long for more news, and for a request. So short steps share a message, and wake the I/O loop less.
BATCH_SECONDS = 0.02
RIDE_SECONDS = 0.01  # news that is so old rides on the next request, and again after as long
TOLD_SECONDS = 0.2  # news that rode is told by a control message after so long
RIDING = struct.Struct("<QQ")  # of a request's extra: the fields of a ``Release``


class _Batch:
    """News for one worker."""

    __slots__ = ("began", "messages", "rides_at", "rode")

    def __init__(self, now: float) -> None:
        self.messages: list[Message] = []
        self.began = now
        self.rides_at = now + RIDE_SECONDS
        self.rode = False


class News:
    """News of one agent that waits to be told. Any thread.

    Args:
        agent: the agent.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._batches: dict[int, _Batch] = {}  # by worker
        self._lock = threading.Lock()
        self._looks = False  # a timer is set

    def add(self, to: int, message: Message) -> None:
        """Tell a worker, within ``BATCH_SECONDS``, or ``TOLD_SECONDS`` if earlier news has ridden on a request."""
        with self._lock:
            if (batch := self._batches.get(to)) is None:
                batch = self._batches[to] = _Batch(self._agent.timers.now())
            add_message(batch.messages, message)
            looks, self._looks = self._looks, True
        if not looks:
            self._agent.timers.after(BATCH_SECONDS, self._look)

    def riding(self, to: int) -> bytes:
        """Return what a request to a worker is to carry; usually nothing."""
        if (batch := self._batches.get(to)) is None or (now := self._agent.timers.now()) < batch.rides_at:
            return b""
        with self._lock:
            message = batch.messages[0] if len(batch.messages) == 1 else None
            if type(message) is not Release:  # it leaves as a control message
                return b""
            batch.rides_at, batch.rode = now + RIDE_SECONDS, True
        return RIDING.pack(*message)

    def post_all(self) -> None:
        """Post all news now."""
        with self._lock:
            batches, self._batches = self._batches, {}
        for to, batch in batches.items():
            self._post(to, batch)

    def _look(self) -> None:
        """Send the news that has not ridden, or is late. On the loop."""
        due = self._agent.timers.now() - TOLD_SECONDS
        with self._lock:
            told = {to: batch for to, batch in self._batches.items() if not batch.rode or batch.began <= due}
            for to in told:
                del self._batches[to]
            self._looks = bool(self._batches)
        if self._looks:
            self._agent.timers.after(TOLD_SECONDS, self._look)
        for to, batch in told.items():
            self._post(to, batch)

    def _post(self, to: int, batch: _Batch) -> None:
        content = ContextMessages(messages=map(_encoded, batch.messages)).SerializeToString()
        self._agent.control.post(self._agent.peers.at(to), GradientTopic.CONTEXT, content)


def _encoded(message: Message) -> ContextMessage:
    if isinstance(message, Release):
        return ContextMessage(kind=RELEASE, context=message.context, since=message.since)
    return ContextMessage(kind=ORPHAN, context=message.context)
