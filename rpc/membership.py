"""Connections of one agent to the others: admits joiners, dials and redials, and chooses how a frame travels.

Requests travel on connections that this worker dialed. Control messages take any connection to their receiver; where the link
is cut they pass through a third worker, which forwards them unread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.errors import RpcError, RpcTimeoutError
from .dispatch import PendingCall
from .lanes.base import Connection
from .losses import Losses
from .messages import Kind
from .peers import Peer
from .security import AcceptorHandshake
from .wire.control import decode_relay, encode_relay, expelled
from .wire.frames import Parts

if TYPE_CHECKING:
    from .agent import Agent

HOPS = 8  # more workers than that pass no frame on


class Membership:
    """The driver of every ``Peer`` of one agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.losses = Losses(agent)
        self.on_lost: list[Callable[[Peer], None]] = self.losses.on_lost
        self.on_broken: list[Callable[[Peer], None]] = []

    def start(self) -> None:
        """Begin to watch the others: they are known."""
        self.losses.watch()

    # -- connections

    def admit(self, handshake: AcceptorHandshake, connection: Connection) -> str:
        """Return why a joiner that knows the secret is refused; empty if it is a worker of this job."""
        joiner, me = handshake.peer, self._agent.record
        if handshake.expected_identity != me.identity:
            return f"it dialed another incarnation; this is {me.name!r} of process {me.process_id}"
        peer = next((peer for peer in self._agent.peers if peer.record.identity == joiner.identity), None)
        if peer is None:
            return f"worker {joiner.name!r} of process {joiner.process_id} is not in this job"
        connection.rank = peer.info.id
        if peer.gone:
            # It is let in to be told: a refusal would look as if this address were another's.
            connection.close(expelled(peer.gone))
            return ""
        with peer.lock:
            peer.accepted.append(connection)
        self.losses.link_changed(peer)
        return ""

    def route(self, peer: Peer) -> Connection:
        """Return the connection for requests to ``peer``, dialed if need be.

        Raises:
            LinkCutError: the link is cut.
        """
        if peer.cut:
            raise peer.cut_error()
        return peer.dialed or self._dial(peer)

    def approach(self, peer: Peer) -> None:
        """Dial ``peer`` unless a connection stands or is being made."""
        if not peer.linked and peer.dialed is None:
            self._dial(peer)

    def _dial(self, peer: Peer) -> Connection:
        fresh = self._new_connection(peer)
        with peer.lock:
            if peer.dialed is not None:
                return peer.dialed
            peer.dialed = fresh
        fresh.start()
        return fresh

    def _new_connection(self, peer: Peer) -> Connection:
        if peer.info.id == self._agent.rank:
            return self._agent.lanes["self"].dial(self._agent, peer.record, self._agent.own_address())
        for scheme, lane in self._agent.lanes.items():
            for address in peer.record.addresses:
                if address.startswith(f"{scheme}://"):
                    return lane.dial(self._agent, peer.record, address)
        raise RpcError(
            f"worker {peer.info.name!r} listens at {', '.join(peer.record.addresses)}, which none of this worker's lanes "
            f"({', '.join(self._agent.lanes)}) reaches; give every worker the same lanes="
        )

    def connected(self, connection: Connection) -> None:
        """A dialed connection is open: the peer was only cut off, if anything."""
        peer = self._agent.peers.at(connection.rank)
        peer.connected()
        self.losses.link_changed(peer)
        self._agent.caller.fail_where(
            lambda call: call.to == connection.rank and call.connection not in (None, connection),
            lambda call: RpcError(
                f"the connection to worker {peer.info.name!r} broke during {call.what}; it may or may not have run there"
            ),
        )
        self._agent.control.flush(peer)

    def disconnected(self, connection: Connection, error: Exception) -> None:
        """A connection ended: find out whether its peer is gone or only cut off."""
        peer = self._agent.peers.at(connection.rank)
        if peer.gone:
            return
        peer.disconnected(connection, error, self._agent.now(), self._agent.options.reconnect_timeout)
        self.losses.link_changed(peer)
        if peer.gone:
            return
        for handler in self.on_broken:
            handler(peer)
        if peer.redial_at is not None:
            self._agent.timers.call_at(peer.redial_at, self._redial, peer)

    def _redial(self, peer: Peer) -> None:
        """Dial a peer whose connection broke, unless that was done or put off meanwhile."""
        if peer.redial_at is not None and peer.redial_at <= self._agent.now() and not self._agent.closed:
            peer.redial_at = None
            self._dial(peer)

    def left(self, connection: Connection, reason: str) -> None:
        """The peer said goodbye."""
        self.losses.left(self._agent.peers.at(connection.rank), reason)

    # -- control frames

    def send_control(self, peer: Peer, frame: Parts) -> None:
        """Send a control frame on any connection to ``peer``, or through another worker. It may be lost on the way."""
        if (connection := self._control_connection(peer)) is not None:
            connection.send(frame)
        else:
            self._pass_on(self._agent.rank, peer, HOPS, b"".join(frame))

    def _control_connection(self, peer: Peer) -> Connection | None:
        if not peer.open and (accepted := peer.accepted[-1:]):
            return accepted[0]
        if peer.trouble is None or peer.open:
            return peer.dialed or self._dial(peer)
        return None

    def _pass_on(self, author: int, receiver: Peer, hops: int, frame: bytes) -> None:
        hop = self.losses.next_hop(receiver.info.id)
        if hop is None or hops == 0:
            return
        next_peer = self._agent.peers.at(hop)
        connection = None if next_peer.gone else self._control_connection(next_peer)
        if connection is not None:
            connection.send(encode_relay(author, receiver.info.id, hops - 1, frame))

    def relayed(self, frame: Any) -> None:
        """A control frame came through another worker: it is for this one, or to be passed on."""
        author, receiver, hops, inner = decode_relay(frame)
        if receiver != self._agent.rank:
            peer = self._agent.peers.at(receiver)
            if not peer.gone:
                self._pass_on(author, peer, hops, inner)
        elif inner[0] == Kind.CONTROL:
            self._agent.control.received(self._agent.peers.at(author), inner)
        elif inner[0] == Kind.ACKNOWLEDGE:
            self._agent.control.acknowledged(self._agent.peers.at(author), inner)

    # -- looking

    def timeout_error(self, call: PendingCall) -> RpcTimeoutError:
        """What a call gets whose deadline passed."""
        return RpcTimeoutError(
            f"{call.what} got no answer within {call.seconds:g} s{self._whereabouts(call)}; give it longer with timeout=, or "
            f"GrpcRpcBackendOptions(rpc_timeout=) for all calls"
        )

    def _whereabouts(self, call: PendingCall) -> str:
        if call.to < 0:
            return ""  # it waits for something that happens here, or for several workers
        return " (it may still run there)" if self._agent.peers.at(call.to).open else " (no connection was open)"

    def describe(self, peer: Peer) -> dict[str, Any]:
        """One peer, for ``debug_info``."""
        cut = f"cut: {peer.cut}" if peer.cut else ""
        state = peer.gone or cut or ("connected" if peer.open else "connecting" if peer.dialed else "not dialed")
        lane = peer.dialed.scheme if peer.dialed else None
        return {"rank": peer.info.id, "state": state, "lane": lane, "unacknowledged": peer.control.open}
