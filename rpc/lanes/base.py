"""Interface between agent and transport: the methods of a lane, and the methods of its agent that a lane calls.

The caller dials, and the reply returns on the connection of its request. So if two workers dial each other at the same time,
both connections are used, and frames of different lanes need no common order. A lane does not look into a frame, except for
one bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...core.futures import Driver, Future
from ...proto.rpc_pb2 import WorkerRecord
from ..call_states import NEW, WRITTEN
from ..security.handshake import AcceptorHandshake, DialerHandshake
from ..security.tls import Tls

HEAD_BYTES = 24  # header of a frame with a handle
SCATTERED = 0x80  # bit of a frame's first byte that only lanes set: it is clear in all frames that a lane is given


class FrameHandle(ABC):
    """Handle of a frame that was given to ``Connection.send``: with it the frame can be withdrawn.

    Attributes:
        state: where the frame is. The lane sets ``WRITTEN`` when it has it, and ``ADMITTED`` if it gives it back.
        waiting: the record of the place where it waits: of the sender's queue, then of the lane.
    """

    __slots__ = ("state", "waiting")

    def __init__(self) -> None:
        self.state = NEW
        self.waiting: Any = None

    def taken(self, waiting: Any) -> None:
        """Note that a lane has the frame from here on; the frame can be withdrawn by the lane's record."""
        loan = self.waiting
        if type(loan) is Loan:
            loan.waiting, waiting = waiting, loan
        self.waiting, self.state = waiting, WRITTEN

    def withdraw(self) -> bool:
        """Drop the frame, if it still waits; return False if it has left. Any thread."""
        waiting = self.waiting
        return waiting is not None and bool(waiting.withdraw())

    @abstractmethod
    def restamp(self, head: bytes) -> bytes:
        """Return the frame's header with the time that is left now. Called when a frame leaves after a wait.

        Args:
            head: the frame's first ``HEAD_BYTES`` bytes, as they were when it was given to the lane.
        """


class Loan:
    """Record of a frame some of which is in segments: its withdrawal gives them back. Made without a call of Python code.

    Attributes:
        undo: called after the frame was withdrawn; the lane then sends the notices of the frame in another way.
        waiting: the lane's record of the frame, while it waits to leave.
    """

    undo: Callable[[], object]
    waiting: Any = None

    def withdraw(self) -> bool:
        """Drop the frame, if it still waits; return False if it has left."""
        if self.waiting is None or not self.waiting.withdraw():
            return False
        self.undo()
        return True


class Reading(Driver, Protocol):
    """Reading of a connection in the threads that wait for its frames. The frames go to the lane's listener."""

    def linger(self, enough: Callable[[], object]) -> None:
        """Read for a moment, until ``enough()``: after the answer to a request the next request often follows soon."""
        ...


class Connection(ABC):
    """Connection to one peer. ``flow`` is for the agent to use.

    Attributes:
        number: number of the peer (``WorkerRecord.number``); -1 until the peer has proven which worker it is.
        scheme: name of the transport that carries its frames now.
        lane_note: text for users: why there is no faster transport; empty if there is no reason to tell.
        opened: the handshake is over, and frames may have left. Until then they wait here.
        reading: lets threads of the agent read what arrives; ``None`` while only the lane's own thread can read.
    """

    number: int = -1
    scheme: str = ""
    lane_note: str = ""
    flow: Any = None
    opened: bool = False
    reading: Reading | None = None

    def start(self) -> None:
        """Begin to connect; for a dialed connection, once. The listener is told the outcome, perhaps inside this call."""

    @abstractmethod
    def send(self, parts: list[Any], handle: FrameHandle | None = None) -> bool:
        """Queue one frame. Any thread. In a thread that may block, it blocks until a large frame has left.

        Args:
            parts: the frame, as bytes-like objects, the first of which is not empty; their memory may change afterwards.
            handle: withdraws the frame.

        Returns:
            False if the connection is closed. True does not mean that the frame arrives: the connection may still break.
        """

    def withdraw(self, handle: FrameHandle) -> bool:
        """Drop a frame that waits. Any thread. True if it still waited: the peer will not receive it."""
        return False

    def take_unsent(self) -> list[tuple[Any, FrameHandle]]:
        """Remove and return the frames with a handle of a connection that ended before it was open. Any thread.

        None of these frames has left.
        """
        return []

    @abstractmethod
    def close(self, last: list[Any] | None = None) -> None:
        """Send what is queued, then ``last`` as a final frame, then close. Any thread; returns at once."""


class LaneListener(Protocol):
    """Listener to the events of a lane: the agent that it serves. For any thread; all methods are quick and run no user code.

    Attributes:
        keepalive: seconds of silence after which the lane asks whether a peer is there; also the seconds that it then waits.
        tls: certificates for connections of lanes that leave the host; None without TLS.
    """

    keepalive: float
    tls: Tls | None = None

    def dialer_handshake(self, expected_identity: bytes, address: str, certificate: bytes = b"") -> DialerHandshake:
        """Return the dialer's end of a handshake.

        Args:
            expected_identity: identity of the worker that should answer; empty for any.
            address: where that worker listens.
            certificate: fingerprint of the certificate that this end shows; empty without TLS.
        """
        ...

    def acceptor_handshake(self) -> AcceptorHandshake:
        """Return the acceptor's end of a handshake."""
        ...

    def members_known(self) -> Future[None]:
        """Return a future that completes when the workers of the job are known. Before that no joiner can be admitted."""
        ...

    def admit(self, handshake: AcceptorHandshake, connection: Connection) -> str:
        """Admit a joiner that has proven the secret, and set the connection's number.

        Returns:
            The reason why the joiner is refused; empty if it is admitted.
        """
        ...

    def crowded(self) -> bool:
        """Return whether so many messages are under way that new ones may wait a moment, to leave together."""
        return False

    def progress(self, connection: Connection) -> int:
        """Return how many messages that arrived on a connection have been used so far."""
        return 0

    def refused(self, address: str, reason: str) -> None:
        """Count a joiner at ``address`` that was refused. ``reason`` is a fixed text without anything that the joiner sent."""
        ...

    def answered(self, connection: Connection) -> None:
        """Note that the transport of a dialed peer answers. The peer itself may take any time for the handshake."""
        ...

    def connected(self, connection: Connection) -> None:
        """Note that a dialed connection is open: the handshake is over."""
        ...

    def received(self, connection: Connection, frame: Any, owned: bool) -> None:
        """Take a frame that arrived.

        Args:
            connection: the connection on which it arrived.
            frame: its bytes.
            owned: the frame's memory is writable, and nothing else uses it.
        """
        ...

    def disconnected(self, connection: Connection, error: Exception) -> None:
        """Note, once, that a connection broke, was refused or closed.

        ``ConnectionRefusedError`` means that no process listens at the address.
        """
        ...


class Lane(ABC):
    """Transport of frames. An agent listens on each of its lanes, and dials on the first lane that both workers have.

    Attributes:
        scheme: scheme of the lane's addresses.
        offers: addresses of the lane's sockets. They are in this worker's record, where dialers find them.
    """

    scheme: str
    offers: Sequence[str] = ()

    @abstractmethod
    def listen(self, listener: LaneListener, address: str | None) -> str:
        """Accept connections, at ``address`` ("host:port") if given.

        Returns:
            The address for others, with the scheme: ``grpc://127.0.0.1:4711``.

        Raises:
            RendezvousError: the address is in use, or not of this machine.
        """

    @abstractmethod
    def dial(self, listener: LaneListener, peer: WorkerRecord, address: str) -> Connection:
        """Return a connection that ``start`` opens. Frames may be sent before ``start``.

        Args:
            listener: is told of the connection's events.
            peer: the worker to reach.
            address: where the worker listens.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop listening and free every resource; the agent has closed the connections."""
