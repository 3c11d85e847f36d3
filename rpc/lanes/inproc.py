"""In-process lane: several agents in one process, and every agent's calls to itself.

As on every lane, a frame is copied, and the receiver owns the copy. Frames are handed over in the sender's thread, unless the
network is given another way (a simulator's queue).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from ...core.errors import RendezvousError
from ...proto.rpc_pb2 import WorkerRecord
from ..call_states import WRITTEN
from ..security.handshake import AcceptorHandshake, DialerHandshake
from .base import Connection, FrameHandle, Lane, LaneListener

Deliver = Callable[[Callable[[], None]], None]


def at_once(delivery: Callable[[], None]) -> None:
    """Deliver in the sender's thread."""
    delivery()


class InProcessNetwork:
    """Network of agents of one process: the addresses at which they listen.

    Args:
        deliver: hands over a frame, by calling its argument.
    """

    def __init__(self, deliver: Deliver = at_once) -> None:
        self.deliver = deliver
        self.listeners: dict[str, LaneListener] = {}
        self._numbers = itertools.count()

    def listen(self, listener: LaneListener, address: str | None) -> str:
        """Register a listener at the given address, or at a new one, and return the address."""
        address = address or f"inproc://{next(self._numbers)}"
        if address in self.listeners:
            raise RendezvousError(f"address {address} is in use by another agent of this process")
        self.listeners[address] = listener
        return address


class InProcessConnection(Connection):
    """One end of a connection; ``other`` is the end at the peer."""

    scheme = "inproc"

    def __init__(self, network: InProcessNetwork, listener: LaneListener) -> None:
        self.network = network
        self.listener = listener
        self.other: InProcessConnection | None = None
        self.connect: Callable[[], None] | None = None
        self._waiting: list[tuple[bytearray, FrameHandle | None]] | None = []  # frames; None once it is open
        self._closed = False
        self._lock = threading.Lock()

    def start(self) -> None:
        if self.connect is not None:
            self.network.deliver(self.connect)

    def send(self, parts: list[Any], handle: FrameHandle | None = None) -> bool:
        frame = bytearray().join(parts)
        with self._lock:
            if self._closed:
                return False
            if self._waiting is not None:
                if handle is not None:
                    handle.state = WRITTEN
                self._waiting.append((frame, handle))
                return True
        if handle is not None:
            handle.state = WRITTEN
        delivered = False
        try:
            self._deliver(frame)
            delivered = True
        finally:
            if not delivered:  # a signal handler has raised something: it is unknown how much was done
                self.close()
        return True

    def take_unsent(self) -> list[tuple[Any, FrameHandle]]:
        with self._lock:
            waiting, self._waiting = self._waiting or [], []
        return [(frame, handle) for frame, handle in waiting if handle is not None]

    def close(self, last: list[Any] | None = None) -> None:
        if last is not None:
            self.send(last)
        self.fail(ConnectionError("closed by this worker"))
        if self.other is not None:
            other = self.other
            self.network.deliver(lambda: other.fail(ConnectionResetError("closed by the peer")))

    def fail(self, error: Exception) -> None:
        """Close this end and tell its listener, once."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.listener.disconnected(self, error)

    @property
    def closed(self) -> bool:
        """Return whether this end is closed."""
        return self._closed

    def open(self, other: InProcessConnection) -> None:
        """Connect this end to the other, and send the frames that waited."""
        with self._lock:
            self.other, self.opened = other, True
            waiting, self._waiting = self._waiting or [], None
        for frame, _ in waiting:
            self._deliver(frame)

    def _deliver(self, frame: bytearray) -> None:
        other = self.other
        assert other is not None
        self.network.deliver(lambda: other.take(frame))

    def take(self, frame: bytearray) -> None:
        """Take a frame that arrived at this end."""
        if not self._closed:
            self.listener.received(self, frame, True)


class InProcessLane(Lane):
    """Lane between agents of one process, which find one another through the network object that they share."""

    scheme = "inproc"

    def __init__(self, network: InProcessNetwork) -> None:
        self.network = network
        self.addresses: list[str] = []

    def listen(self, listener: LaneListener, address: str | None) -> str:
        self.addresses.append(self.network.listen(listener, address))
        return self.addresses[-1]

    def dial(self, listener: LaneListener, peer: WorkerRecord, address: str) -> Connection:
        mine = InProcessConnection(self.network, listener)
        mine.number = peer.number
        mine.connect = lambda: self._connect(mine, peer, address)
        return mine

    def close(self) -> None:
        for address in self.addresses:
            self.network.listeners.pop(address, None)
        self.addresses.clear()

    def _connect(self, mine: InProcessConnection, peer: WorkerRecord, address: str) -> None:
        listener = self.network.listeners.get(address)
        if listener is None:
            mine.fail(ConnectionRefusedError(f"no agent listens at {address}"))
            return
        dialer, acceptor = mine.listener.dialer_handshake(peer.identity, address), listener.acceptor_handshake()
        try:
            acceptor.check(dialer.prove(acceptor.challenge(dialer.hello())))
        except Exception as error:
            listener.refused("this process", str(error))
            mine.fail(error)
            return
        listener.members_known().add_done_callback(lambda _: self._admit(mine, listener, dialer, acceptor))

    def _admit(
        self, mine: InProcessConnection, listener: LaneListener, dialer: DialerHandshake, acceptor: AcceptorHandshake
    ) -> None:
        theirs = InProcessConnection(self.network, listener)
        try:
            dialer.check(acceptor.welcome(listener.admit(acceptor, theirs)))
        except Exception as error:
            mine.fail(error)
            return
        theirs.open(mine)
        mine.opened = True
        mine.listener.connected(mine)
        mine.open(theirs)
        if theirs.closed:  # by the listener, when it could not tell this end; a last frame comes first
            self.network.deliver(lambda: mine.fail(ConnectionResetError("closed by the peer")))
