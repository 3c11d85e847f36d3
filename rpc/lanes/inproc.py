"""In-process lane: several agents in one process, and every agent's calls to itself.

As on every lane, a frame is copied, and the receiver owns the copy. It takes the frame in the sender's thread.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...base.errors import RendezvousError
from ..call_states import WRITTEN
from .lane import Lane, LaneListener
from .pipe import Pipe
from .session import Session

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from ..security.handshake import AcceptorHandshake, DialerHandshake
    from .frame import FrameHandle, WaitingFrame


class InProcessNetwork:
    """Network of agents of one process: the addresses at which they listen."""

    def __init__(self) -> None:
        self.listeners: dict[str, LaneListener] = {}
        self._numbers = itertools.count()

    def listen(self, listener: LaneListener, address: str | None) -> str:
        """Register a listener at the given address, or at a new one, and return the address."""
        address = address or f"inproc://{next(self._numbers)}"
        if address in self.listeners:
            raise RendezvousError(f"address {address} is in use by another agent of this process")
        self.listeners[address] = listener
        return address


class InProcessSession(Session):
    """One end of a session; ``other`` is the end at the peer."""

    scheme = "inproc"

    def __init__(self, listener: LaneListener) -> None:
        super().__init__()
        self.listener = listener
        self.other: InProcessSession | None = None
        self.connect: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        if self.connect is not None:
            self.connect()

    def close(self, last: list[Any] | None = None) -> None:
        if last is not None:
            self.send(last)
        self.fail(ConnectionError("closed by this worker"))
        if self.other is not None:
            self.other.fail(ConnectionResetError("closed by the peer"))

    def fail(self, error: Exception) -> None:
        """Close this end and tell its listener, once."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
        self.small.close()
        self.listener.disconnected(self, error)

    def open(self, other: InProcessSession) -> None:
        """Connect this end to the other, and send the frames that waited."""
        self.other = other
        self.use(InProcessPipe(self, other), self.scheme)


class InProcessPipe(Pipe):
    """Frames from one session to its other end, as calls.

    Args:
        near: the session that sends.
        far: its other end.
    """

    def __init__(self, near: InProcessSession, far: InProcessSession) -> None:
        self._near = near
        self._far = far

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        if handle is not None:
            handle.waiting, handle.state = None, WRITTEN
        frame, far, delivered = bytearray().join(parts), self._far, False
        try:
            if not far.closed:
                far.listener.received(far, frame, True)
            delivered = True
        finally:
            if not delivered:  # a signal handler has raised something: it is unknown how much was done
                self._near.close()
        return True

    def add(self, frames: Iterable[WaitingFrame]) -> None:
        for frame in frames:
            if (taken := frame.take_back()) is not None:
                self.send([taken[0]], len(taken[0]), taken[1])


class InProcessLane(Lane):
    """Lane between agents of one process, which find one another through the network object that they share."""

    scheme = "inproc"

    def __init__(self, network: InProcessNetwork) -> None:
        self.network = network
        self.addresses: list[str] = []

    def listen(self, listener: LaneListener, address: str | None) -> str:
        self.addresses.append(self.network.listen(listener, address))
        return self.addresses[-1]

    def dial(self, listener: LaneListener, peer: WorkerRecord, address: str) -> Session:
        mine = InProcessSession(listener)
        mine.number = peer.number
        mine.connect = lambda: self._connect(mine, peer, address)
        return mine

    def close(self) -> None:
        for address in self.addresses:
            self.network.listeners.pop(address, None)
        self.addresses.clear()

    def _connect(self, mine: InProcessSession, peer: WorkerRecord, address: str) -> None:
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
        self, mine: InProcessSession, listener: LaneListener, dialer: DialerHandshake, acceptor: AcceptorHandshake
    ) -> None:
        theirs = InProcessSession(listener)
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
            mine.fail(ConnectionResetError("closed by the peer"))
