"""Routes of control frames: on any session to their receiver or, where the link is cut, through a third worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..wire.control import decode_relay, encode_relay
from .link import LinkState

if TYPE_CHECKING:
    from ..lanes.session import Session
    from ..state import AgentState
    from ..wire.frames import Parts
    from .peer import Peer
    from .peers import Peers
    from .sessions import Sessions

HOPS = 8  # most workers that pass a frame on


class Relay:
    """Sends the control frames of one agent, and passes on those of others, unread.

    Args:
        state: the agent's state.
        peers: the workers of the job.
        sessions: the agent's sessions.
        next_hop: gets a worker's number; returns the number of the worker through which it is reached, ``None`` if unknown.
    """

    def __init__(
        self, state: AgentState, peers: Peers, sessions: Sessions, next_hop: Callable[[int], int | None]
    ) -> None:
        self._state = state
        self._peers = peers
        self._sessions = sessions
        self._next_hop = next_hop

    def send(self, peer: Peer, frame: Parts) -> None:
        """Send a control frame to ``peer``. It may be lost on the way."""
        if self._state.closed:
            return  # its goodbye may not have what it would acknowledge
        if (session := self._direct(peer)) is not None:
            session.send(frame)
        else:
            self._pass_on(self._state.number, peer, HOPS, b"".join(frame))

    def received(self, frame: Any) -> tuple[Peer, bytes] | None:
        """Take a frame that came through another worker. Return its author and the frame inside if it is for this worker."""
        author, receiver, hops, inner = decode_relay(frame)
        if self._state.dynamic and not (author in self._peers and receiver in self._peers):
            return None  # one of them was lost before this worker joined
        writer, peer = self._peers.at(author), self._peers.at(receiver)  # raises if one of them does not exist
        if receiver == self._state.number:
            return writer, inner
        if not peer.gone:
            self._pass_on(author, peer, hops, inner)
        return None

    def _direct(self, peer: Peer) -> Session | None:
        if (latest := peer.where_it_reads()) is not None:
            return latest  # if a thread of the peer reads, it reads there: the frame wakes no other
        link = peer.link
        if link.state is not LinkState.OPEN and (accepted := link.accepted[-1:]):
            return accepted[0]
        if peer.suspicion.trouble is None or link.state is LinkState.OPEN:
            return link.dialed or self._sessions.dial(peer)
        return None

    def _pass_on(self, author: int, receiver: Peer, hops: int, frame: bytes) -> None:
        hop = self._next_hop(receiver.number)
        if hop is None or hops == 0:
            return
        next_peer = self._peers.at(hop)
        session = None if next_peer.gone else self._direct(next_peer)
        if session is not None:
            session.send(encode_relay(author, receiver.number, hops - 1, frame))
