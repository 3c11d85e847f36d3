"""Control channel: small messages that arrive exactly once, unless their receiver is lost.

It drives the control queues: it sends the messages that are due, delivers those that arrive, and acknowledges them. Control
messages never wait behind user functions. They travel on any session to the peer and are delivered in the thread that
reads (or the loop's, see ``received``). They are repeated until acknowledged. The only other retries of an agent are those of
its links (``link.py``).

In a busy time each frame costs a write and wakes the peer's reader. So a message that no thread waits for, and an
acknowledgement soon after another, leave with the next frame to the peer (``LateFrames``), or some milliseconds later.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.futures import Future, complete_once, thread_role
from ..threads.ioloop import may_block
from ..wire.control import (
    ControlMessage,
    decode_acknowledgement,
    decode_control,
    encode_acknowledgement,
    encode_control,
)
from .link import LinkState
from .peer import Peer

if TYPE_CHECKING:
    from ..threads.timers import Alarm, Batch, Timers
    from ..wire.frames import Parts

logger = logging.getLogger("telegrad.rpc")
GONE = LinkState.GONE
ControlHandler = Callable[[Peer, bytes], None]


class ControlChannel:
    """Control messages of one agent, in both directions.

    Args:
        timers: for repetitions.
        send: sends a frame to a peer by any route; it may be lost on the way.
    """

    def __init__(self, timers: Timers, send: Callable[[Peer, Parts], None]) -> None:
        self._timers = timers
        self._send = send
        self._handlers: dict[int, ControlHandler] = {}
        self._alarms: dict[Peer, Alarm] = {}  # when messages to each peer are repeated, unless they are acknowledged
        self._late: Batch[Peer] = timers.together(self._send_late)  # to which something is to leave in a moment
        self._hurries = False  # the agent ends: nothing waits any more
        self._drained: Future[None] | None = None
        self._handling = _Handling()
        self._used: dict[Peer, None] = {}  # an ordered set: the peers with which messages were exchanged

    def on(self, topic: int, handler: ControlHandler) -> None:
        """Deliver messages of ``topic`` to ``handler(peer, payload)``, in a reader's thread: quick, no user code."""
        self._handlers[topic] = handler

    def on_late(self, topic: int, ready: Callable[[], object]) -> None:
        """Call ``ready``, which calls ``on`` for the topic, when the first of its messages is delivered."""

        def first(peer: Peer, payload: bytes) -> None:
            ready()
            self._handlers[topic](peer, payload)

        self.on(topic, first)

    def post(self, peer: Peer, topic: int, payload: bytes, hurried: bool = True) -> None:
        """Send a message to ``peer``; it arrives exactly once, unless the peer is lost.

        Args:
            peer: the receiver.
            topic: number of the handler there.
            payload: what the handler gets.
            hurried: False for a message that no thread waits for; it leaves with the next, or some milliseconds later.
        """
        role = thread_role
        outer, role.inside = role.inside, True
        try:
            self._used[peer] = None
            with peer.lock:
                peer.control.post(payload, topic)
                if not (hurried or self._hurries):
                    self._wait(peer)
                    return
                if (posted := self._handling.posted) is not None:
                    posted[peer] = None
                    return
                messages = peer.control.unsent(self._timers.now())
                due = peer.control.next_due()
            self._send_batch(peer, messages, due)
        finally:
            role.inside = outer

    def reroute(self, peer: Peer) -> None:
        """Send again everything that ``peer`` has not acknowledged: there is another route to it now."""
        with peer.lock:
            peer.control.reconnected()
        self.flush(peer)

    def flush(self, peer: Peer) -> None:
        """Send the messages that are due."""
        with peer.lock:
            messages = peer.control.due(self._timers.now())
            due = peer.control.next_due()
        self._send_batch(peer, messages, due)

    def received(self, peer: Peer, frame: Any) -> None:
        """Deliver a batch of control messages, and acknowledge them by any route.

        If the main thread reads the socket, the loop's thread delivers: what a user's signal handler raises there could lose a
        message that was noted as received and is not handled yet.
        """
        if threading.get_ident() == threading.main_thread().ident and not may_block():
            self._timers.soon(partial(self._received, peer, bytes(frame)))
        else:
            self._received(peer, frame)

    def _received(self, peer: Peer, frame: Any) -> None:
        self._used[peer] = None
        outer = self._handling.posted
        posted: dict[Peer, None] = {}
        self._handling.posted = posted
        try:
            for number, topic, payload in decode_control(frame):
                with peer.lock:
                    fresh = peer.control.receive(number, topic)
                if fresh:
                    self._deliver(peer, topic, payload)
        finally:
            self._handling.posted = outer
            for other in posted:
                self.flush(other)
        if not self._acknowledge(peer, None if self._hurries else self._timers.now()):
            self._wait(peer)

    def _wait(self, peer: Peer) -> None:
        """Let what there is for a peer leave with the next frame to it, or in a moment."""
        peer.late.take = partial(self._take_late, peer)
        self._late.add(peer)

    def _take_late(self, peer: Peer) -> list[Parts]:
        """Return the frames that wait for another one to ``peer``."""
        with peer.lock:
            peer.late.take = None  # first: what is added from here on sets it again
            acknowledgements, messages = peer.control.take_acks(), peer.control.unsent(self._timers.now())
            due = peer.control.next_due()
        if due is not None:
            self._repeat_at(peer, due)
        frames = [encode_acknowledgement(acknowledgements)] if acknowledgements else []
        return [*frames, encode_control(messages)] if messages else frames

    def _acknowledge(self, peer: Peer, now: float | None = None) -> bool:
        """Acknowledge what has arrived; return False if there was nothing, or it waits because others were a moment ago."""
        with peer.lock:
            acknowledgements = peer.control.take_acks(now)
        if acknowledgements:
            self._send(peer, encode_acknowledgement(acknowledgements))
        return bool(acknowledgements)

    def _send_late(self, peers: list[Peer]) -> None:
        for peer in dict.fromkeys(peers):
            if peer.late.take is not None and peer.link.state is not GONE:
                for frame in self._take_late(peer):
                    self._send(peer, frame)

    def acknowledged(self, peer: Peer, frame: Any) -> list[ControlMessage]:
        """Forget the messages that a peer has received, and return them."""
        with peer.lock:
            acknowledged = peer.control.acknowledge(decode_acknowledgement(frame), self._timers.now())
        self.flush_drained()
        return acknowledged

    def drain(self) -> Future[None]:
        """Return a future that completes when every posted message is acknowledged, or its receiver is gone."""
        drained = self._drained = self._drained or Future()  # another thread may wait in shutdown too
        self._hurries = True
        self._late.flush()
        self.flush_drained()
        return drained

    def flush_drained(self) -> None:
        """Complete ``drain`` if nothing is left to acknowledge."""
        drained = self._drained
        if drained is None or any(_next_due(peer) is not None for peer in self.used()):
            return
        self._drained = None
        complete_once(drained)  # another reader's thread may be here too

    def used(self) -> list[Peer]:
        """Return the peers with which messages were exchanged: usually a small part of all."""
        return list(self._used)

    def open(self) -> int:
        """Return how many messages are not acknowledged yet."""
        return sum(peer.control.open for peer in self.used())

    def _send_batch(self, peer: Peer, messages: list[ControlMessage], due: float | None) -> None:
        if due is not None:
            self._repeat_at(peer, due)
        if messages and peer.link.state is not GONE:
            self._send(peer, encode_control(messages))

    def _repeat_at(self, peer: Peer, due: float) -> None:
        alarm = self._alarms.get(peer)
        if alarm is None:
            alarm = self._alarms[peer] = self._timers.alarm(partial(self.flush, peer))
        alarm.set(due)

    def _deliver(self, peer: Peer, topic: int, payload: bytes) -> None:
        try:
            self._handlers[topic](peer, payload)
        except Exception:
            logger.exception("a control message of topic %d from worker %r could not be handled", topic, peer.info.name)


class _Handling(threading.local):
    """Peers to which a thread has posted while it handles a batch; ``None`` while it handles none.

    These messages leave after the batch, those for one peer together.
    """

    posted: dict[Peer, None] | None = None


def _next_due(peer: Peer) -> float | None:
    # Under the lock: ``next_due`` removes old entries, and another thread could change the queue between its look and that.
    with peer.lock:
        return peer.control.next_due()
