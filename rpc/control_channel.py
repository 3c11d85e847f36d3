"""Control channel: small messages to every peer that arrive exactly once, or their receiver is lost.

It drives the control queues: sends what is due, delivers what arrives, acknowledges. Control messages never wait behind user
functions: they are delivered in the thread of a reader (or the loop's, see ``received``), on any connection to the peer, and
repeated until acknowledged. Nothing else in the package retries.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from ..core.futures import Future, complete_once
from .control_queue import ControlMessage
from .lanes.ioloop import may_block
from .peers import Peer
from .timers import Alarm, Timers
from .wire.control import decode_acknowledgement, decode_control, encode_acknowledgement, encode_control
from .wire.frames import Parts

logger = logging.getLogger("telegrad.rpc")
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
        self._drained: Future[None] | None = None
        self._handling = _Handling()
        self._used: dict[Peer, None] = {}  # a set: peers to which something was posted, or from which something came

    def on(self, topic: int, handler: ControlHandler) -> None:
        """Deliver messages of ``topic`` to ``handler(peer, payload)``: in a reader's thread, quick, no user code."""
        self._handlers[topic] = handler

    def post(self, peer: Peer, topic: int, payload: bytes) -> None:
        """Send a message to ``peer``; it arrives exactly once, or the peer is lost.

        Args:
            peer: the receiver.
            topic: number of the handler there.
            payload: what the handler gets.
        """
        self._used[peer] = None
        try:
            with peer.lock:
                peer.control.post(payload, topic)
                if (posted := self._handling.posted) is not None:
                    posted[peer] = None
                    return
                messages = peer.control.unsent(self._timers.now())
                due = peer.control.next_due()
            self._send_batch(peer, messages, due)
        except BaseException:  # Ctrl-C, say: it may have been posted, and nobody else would send it
            self._repeat_at(peer, self._timers.now())
            raise

    def reroute(self, peer: Peer) -> None:
        """Send everything again that ``peer`` has not acknowledged: there is another route to it now."""
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

        Not in the main thread while that reads a socket: Ctrl-C would lose what was noted as received and not yet handled.
        """
        if threading.get_ident() == threading.main_thread().ident and not may_block():
            self._timers.call_soon(partial(self._received, peer, bytes(frame)))
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
            self._flush_all(list(posted))
        with peer.lock:
            acknowledgements = peer.control.take_acks()
        if acknowledgements:
            self._send(peer, encode_acknowledgement(acknowledgements))

    def _flush_all(self, peers: list[Peer]) -> None:
        for position, peer in enumerate(peers):
            try:
                self.flush(peer)
            except BaseException:  # nobody else would send what the others are to get
                for other in peers[position:]:
                    self._repeat_at(other, self._timers.now())
                raise

    def acknowledged(self, peer: Peer, frame: Any) -> None:
        """Forget the messages that a peer has received."""
        with peer.lock:
            peer.control.acknowledge(decode_acknowledgement(frame))
        self.flush_drained()

    def drain(self) -> Future[None]:
        """Return a future that completes when everything posted is acknowledged, or its receiver gone."""
        drained = self._drained = self._drained or Future()  # another thread may be waiting in shutdown too
        self.flush_drained()
        return drained

    def flush_drained(self) -> None:
        """Complete ``drain`` if nothing is left to acknowledge."""
        drained = self._drained
        if drained is None or any(_next_due(peer) is not None for peer in self.used()):
            return
        self._drained = None
        complete_once(drained)  # another reader's thread may have come here too

    def used(self) -> list[Peer]:
        """Return the peers with which messages were exchanged: few of many, usually."""
        return list(self._used)

    def open(self) -> int:
        """Return how many messages were not acknowledged yet."""
        return sum(peer.control.open for peer in self.used())

    def _send_batch(self, peer: Peer, messages: list[ControlMessage], due: float | None) -> None:
        if due is not None:
            self._repeat_at(peer, due)
        if messages and not peer.gone:
            self._send(peer, encode_control(messages))

    def _repeat_at(self, peer: Peer, due: float) -> None:
        alarm = self._alarms.get(peer)
        if alarm is None:
            alarm = self._alarms[peer] = Alarm(self._timers, partial(self.flush, peer))
        alarm.set(due)

    def _deliver(self, peer: Peer, topic: int, payload: bytes) -> None:
        try:
            self._handlers[topic](peer, payload)
        except Exception:
            logger.exception("a control message of topic %d from worker %r could not be handled", topic, peer.info.name)


class _Handling(threading.local):
    """Peers to which the messages that a thread handles have made it post: what is for one peer leaves together, after them."""

    posted: dict[Peer, None] | None = None


def _next_due(peer: Peer) -> float | None:
    # Under the lock: it removes entries of acknowledged messages, and must not remove another's that it has not looked at.
    with peer.lock:
        return peer.control.next_due()
