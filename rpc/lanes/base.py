"""The seam between agent and transport: how frames travel, and what a lane may ask of its agent.

Lanes are directional: the caller dials, the reply returns on the connection of its request. So there is no tie between
two connections to break and no order to keep between lanes. A lane never looks into a frame.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from ...core.futures import Future
from ...proto.rpc_pb2 import WorkerRecord
from ..security import AcceptorHandshake, DialerHandshake

HEAD_BYTES = 24  # of a frame that has a ticket


class Ticket(ABC):
    """Names a frame that was given to ``Connection.send``. ``place``, where it waits, is for the lane to use."""

    __slots__ = ("place",)

    def __init__(self) -> None:
        self.place: Any = None

    @abstractmethod
    def restamp(self, head: bytes) -> bytes:
        """The frame's first ``HEAD_BYTES`` bytes as they are right now. A lane asks when a frame leaves that had to wait."""


class Connection(ABC):
    """A way to one peer. ``rank`` is -1 until the peer has proven who it is. ``flow`` is the agent's."""

    rank: int = -1
    scheme: str = ""
    flow: Any = None

    def start(self) -> None:
        """Begin to connect; for a dialed connection, once. Its host hears of the outcome later, or from inside this call."""

    @abstractmethod
    def send(self, parts: list[Any], ticket: Ticket | None = None) -> bool:
        """Queue one frame, given as bytes-like parts. Any thread; never blocks; the memory may change afterwards.

        Returns:
            False if the connection is closed. True promises nothing: it may still break.
        """

    def withdraw(self, ticket: Ticket) -> bool:
        """Let go of a frame that waits. Any thread. True if it was still there: the peer will not receive it."""
        return False

    @abstractmethod
    def close(self, last: list[Any] | None = None) -> None:
        """Send what is queued, then ``last`` as a final frame, then close. Any thread; returns at once."""


class Host(Protocol):
    """What a lane asks of the agent that it serves. All of it is quick, runs no user code, and may come from any thread.

    ``keepalive``: seconds of silence after which the lane asks whether a peer is there, and then waits for an answer.
    """

    keepalive: float

    def dialer_handshake(self, expected_identity: bytes, address: str) -> DialerHandshake:
        """Return the dialer's end of a handshake with the worker of that identity (empty: whoever listens) and address."""
        ...

    def acceptor_handshake(self) -> AcceptorHandshake:
        """Return the acceptor's end of one."""
        ...

    def members_known(self) -> Future[None]:
        """Return a future that completes when the workers of the job are known: before that nobody can be admitted."""
        ...

    def admit(self, handshake: AcceptorHandshake, connection: Connection) -> str:
        """Return why a joiner that proved the secret is refused; empty if it is admitted, and the connection has its rank."""
        ...

    def refused(self, address: str, reason: str) -> None:
        """Count a joiner at ``address`` that was refused. ``reason`` is a fixed text without anything that the joiner sent."""
        ...

    def connected(self, connection: Connection) -> None:
        """A dialed connection is open: its peer proved itself."""
        ...

    def received(self, connection: Connection, frame: Any, owned: bool) -> None:
        """A frame arrived. ``owned``: its memory is writable and nobody else's."""
        ...

    def disconnected(self, connection: Connection, error: Exception) -> None:
        """The connection broke, was refused, or was closed; told once. ``ConnectionRefusedError``: nobody listens there."""
        ...


class Lane(ABC):
    """One transport. The agent listens on every lane that it has and dials the first one that both sides know."""

    scheme: str

    @abstractmethod
    def listen(self, host: Host, address: str | None) -> str:
        """Accept connections, at ``address`` ("host:port") if given.

        Returns:
            The address for others, with the scheme: ``grpc://127.0.0.1:4711``.

        Raises:
            RendezvousError: the address is taken or not ours.
        """

    @abstractmethod
    def dial(self, host: Host, peer: WorkerRecord, address: str) -> Connection:
        """A connection that ``start`` opens; frames may be sent before."""

    @abstractmethod
    def close(self) -> None:
        """Stop listening and free every resource; the agent has closed the connections."""
