"""Interface between agent and transport: how frames travel, and what a lane may ask of its agent.

Lanes are directional: the caller dials, the reply returns on the connection of its request. So there is no tie between
two connections to break and no order to keep between lanes. A lane never looks into a frame, but for one bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...core.futures import Driver, Future
from ...proto.rpc_pb2 import WorkerRecord
from ..security import AcceptorHandshake, DialerHandshake
from ..tls import Tls

HEAD_BYTES = 24  # of a frame with a handle
SCATTERED = 0x80  # bit of a frame's first byte that is the lane's own: no frame that is given to a lane has it


class FrameHandle(ABC):
    """Handle of a frame that was given to ``Connection.send``: with it the frame can be withdrawn.

    Attributes:
        waiting: the lane's record of the frame, while it waits to leave.
        undo: called after the frame was withdrawn: the lane takes back what it would have told.
        in_hand: its sender has counted it as in flight, and no lane has it: a sender that is interrupted takes that back.
    """

    __slots__ = ("in_hand", "undo", "waiting")

    def __init__(self) -> None:
        self.waiting: Any = None
        self.undo: Callable[[], object] | None = None
        self.in_hand = False

    def taken(self, waiting: Any) -> None:
        """Note that a lane has the frame from here on: its record can withdraw it."""
        self.waiting, self.in_hand = waiting, False  # no signal handler can run between the two

    def withdraw(self) -> bool:
        """Drop the frame, if it waits; False if it has left. Any thread."""
        if self.waiting is None or not self.waiting.withdraw():
            return False
        if self.undo is not None:
            self.undo()
        return True

    @abstractmethod
    def restamp(self, head: bytes) -> bytes:
        """Return the frame's first ``HEAD_BYTES`` bytes as they are right now, when it leaves after it had to wait.

        Args:
            head: these bytes as they were when it was sent.
        """


class Reading(Driver, Protocol):
    """Reading of a connection, in the threads that wait for what it brings. Its frames go to the lane's listener."""

    def linger(self, enough: Callable[[], object]) -> None:
        """Read for a moment, until ``enough()``: the next request often follows the answer to the one before."""
        ...


class Connection(ABC):
    """Connection to one peer. ``flow`` is for the agent to use.

    Attributes:
        number: the peer's (``WorkerRecord.number``); -1 until it has proven who it is.
        scheme: the way its frames travel now.
        lane_note: for people: why it is not a faster one; empty if there is nothing to say.
        opened: both ends know each other, and frames may have left. Until then they wait here.
        reading: lets threads of the agent read what arrives; ``None`` while the lane's own thread must.
    """

    number: int = -1
    scheme: str = ""
    lane_note: str = ""
    flow: Any = None
    opened: bool = False
    reading: Reading | None = None

    def start(self) -> None:
        """Begin to connect; for a dialed connection, once. Its listener hears of the outcome, perhaps inside this call."""

    @abstractmethod
    def send(self, parts: list[Any], handle: FrameHandle | None = None) -> bool:
        """Queue one frame. Any thread. It blocks only with a large frame, and in a thread that may: until that has left.

        Args:
            parts: the frame, as bytes-like objects, the first of which is not empty; their memory may change afterwards.
            handle: to withdraw it with.

        Returns:
            False if the connection is closed. True promises nothing: it may still break.
        """

    def withdraw(self, handle: FrameHandle) -> bool:
        """Drop a frame that waits. Any thread. True if it was still there: the peer will not receive it."""
        return False

    def take_unsent(self) -> list[tuple[Any, FrameHandle]]:
        """Take the frames with a handle out of a connection that ended before it was open: none has left. Any thread."""
        return []

    @abstractmethod
    def close(self, last: list[Any] | None = None) -> None:
        """Send what is queued, then ``last`` as a final frame, then close. Any thread; returns at once."""


class LaneListener(Protocol):
    """Listener to the events of a lane: the agent that it serves. All of it is quick, runs no user code, in any thread.

    Attributes:
        keepalive: seconds of silence after which the lane asks whether a peer is there, and then waits for an answer.
        tls: certificates for connections of lanes that leave the host; None without TLS.
    """

    keepalive: float
    tls: Tls | None = None

    def dialer_handshake(self, expected_identity: bytes, address: str, certificate: bytes = b"") -> DialerHandshake:
        """Return the dialer's end of a handshake.

        Args:
            expected_identity: of the worker that should answer; empty for any that listens.
            address: where it listens.
            certificate: fingerprint of the certificate that this end shows there; empty without TLS.
        """
        ...

    def acceptor_handshake(self) -> AcceptorHandshake:
        """Return the acceptor's end of one."""
        ...

    def members_known(self) -> Future[None]:
        """Return a future that completes when the workers of the job are known: before that nobody can be admitted."""
        ...

    def admit(self, handshake: AcceptorHandshake, connection: Connection) -> str:
        """Return why a joiner that proved the secret is refused; empty if it is admitted, and the connection has its number."""
        ...

    def crowded(self) -> bool:
        """Return whether so many messages are under way that they may wait a moment, to travel together."""
        return False

    def progress(self, connection: Connection) -> int:
        """Return how many messages that arrived on a connection have been used so far."""
        return 0

    def refused(self, address: str, reason: str) -> None:
        """Count a joiner at ``address`` that was refused. ``reason`` is a fixed text without anything that the joiner sent."""
        ...

    def answered(self, connection: Connection) -> None:
        """Note that the system of a dialed peer answers. The peer itself may take any time for the handshake."""
        ...

    def connected(self, connection: Connection) -> None:
        """Note that a dialed connection is open: its peer proved itself."""
        ...

    def received(self, connection: Connection, frame: Any, owned: bool) -> None:
        """Take a frame that arrived. ``owned``: its memory is writable and nobody else's.

        Args:
            connection: the connection that it arrived on.
            frame: its bytes.
            owned: its memory is writable and nobody else's.
        """
        ...

    def disconnected(self, connection: Connection, error: Exception) -> None:
        """Note, once, that a connection broke, was refused or closed. ``ConnectionRefusedError``: nobody listens there."""
        ...


class Lane(ABC):
    """One transport. The agent listens on every lane that it has and dials the first one that both sides know.

    Attributes:
        scheme: what its addresses begin with.
        offers: addresses of its sockets, which a dialer of this lane finds in the record of this worker.
    """

    scheme: str
    offers: Sequence[str] = ()

    @abstractmethod
    def listen(self, listener: LaneListener, address: str | None) -> str:
        """Accept connections, at ``address`` ("host:port") if given.

        Returns:
            The address for others, with the scheme: ``grpc://127.0.0.1:4711``.

        Raises:
            RendezvousError: the address is taken or not ours.
        """

    @abstractmethod
    def dial(self, listener: LaneListener, peer: WorkerRecord, address: str) -> Connection:
        """Return a connection that ``start`` opens; frames may be sent before.

        Args:
            listener: hears of the connection's events.
            peer: the worker to reach.
            address: where it listens.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop listening and free every resource; the agent has closed the connections."""
