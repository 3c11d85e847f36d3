"""Interface between agent and transport: the methods of a lane, and the methods of its agent that a lane calls.

A lane makes sessions (``session.py``), each of which has pipes (``pipe.py``) that carry its frames. It does not look into a
frame, except for one bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence, Sized
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ...core.futures import Future
    from ...proto.rpc_pb2 import WorkerRecord
    from ..security.handshake import AcceptorHandshake, DialerHandshake
    from ..security.tls import Tls
    from .large.landing import Landing
    from .session import Session


class LaneListener(Protocol):
    """Listener to the events of a lane: the agent that it serves. For any thread; all methods are quick and run no user code.

    Attributes:
        keepalive: seconds of silence after which the lane asks whether a peer is there; also the seconds that it then waits.
        tls: certificates for sessions of lanes that leave the host; None without TLS.
        under_way: calls of the agent, and requests that have not begun: if they are many, frames may leave together.
    """

    keepalive: float
    tls: Tls | None = None
    under_way: tuple[Sized, Sized] = ((), ())

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

    def admit(self, handshake: AcceptorHandshake, session: Session) -> str:
        """Admit a joiner that has proven the secret, and set the session's number.

        Returns:
            The reason why the joiner is refused; empty if it is admitted.
        """
        ...

    def progress(self, session: Session) -> int:
        """Return how many messages that arrived in a session have been used so far."""
        return 0

    def refused(self, address: str, reason: str) -> None:
        """Count a joiner at ``address`` that was refused. ``reason`` is a fixed text without anything that the joiner sent."""
        ...

    def answered(self, session: Session) -> None:
        """Note that the transport of a dialed peer answers. The peer itself may take any time for the handshake."""
        ...

    def connected(self, session: Session) -> None:
        """Note that a dialed session is open: the handshake is over."""
        ...

    def received(self, session: Session, frame: Any, owned: bool, /) -> None:
        """Take a frame that arrived.

        Args:
            session: the session in which it arrived.
            frame: its bytes.
            owned: the frame's memory is writable, and nothing else uses it.
        """
        ...

    def landing(self, session: Session, front: memoryview, size: int, /) -> Landing | None:
        """Return where the one large piece of a frame is to be received, if the agent has memory for it.

        Args:
            session: the session in which it arrives.
            front: the frame without the piece.
            size: of the piece, in bytes.
        """
        return None

    def disconnected(self, session: Session, error: Exception) -> None:
        """Note, once, that a session broke, was refused or closed.

        ``ConnectionRefusedError`` means that no process listens at the address.
        """
        ...


class Lane(ABC):
    """Transport of frames. An agent listens on each of its lanes, and dials on the first lane that both workers have.

    Attributes:
        scheme: scheme of the lane's addresses.
        sockets: kinds of sockets that may carry the frames of its sessions, of ``sockets.KINDS``, the preferred first.
        offers: addresses of the lane's sockets. They are in this worker's record, where dialers find them.
    """

    scheme: str
    sockets: Sequence[str] = ()
    offers: Sequence[str] = ()

    @abstractmethod
    def listen(self, listener: LaneListener, address: str | None) -> str:
        """Accept sessions, at ``address`` ("host:port") if given.

        Returns:
            The address for others, with the scheme: ``grpc://127.0.0.1:4711``.

        Raises:
            RendezvousError: the address is in use, or not of this machine.
        """

    @abstractmethod
    def dial(self, listener: LaneListener, peer: WorkerRecord, address: str) -> Session:
        """Return a session that ``start`` opens. Frames may be sent before ``start``.

        Args:
            listener: is told of the session's events.
            peer: the worker to reach.
            address: where the worker listens.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop listening and free every resource; the agent has closed the sessions."""


class ServingLane(Lane):
    """Lane that also serves streams of other parts: each method is a stream that a handshake opens."""

    @abstractmethod
    def serve(self, method: str, handler: Callable[[Any, Any], Awaitable[None]]) -> None:
        """Serve streams of ``method`` ("/service/method") with ``handler(_, context)``; before ``listen``."""

    @abstractmethod
    async def authenticate(self, context: Any) -> AcceptorHandshake:
        """Return the handshake with which a stream of such a handler was opened; end the stream if its proof is wrong."""

    @property
    @abstractmethod
    def last_refusal(self) -> str:
        """Return the address of the joiner that was refused last, and the reason; empty if none was refused."""
