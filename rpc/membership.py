"""Who is there: admits visitors, dials and redials, and carries out the verdict that a worker is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.errors import RpcError, RpcTimeoutError
from ..proto.telegrad_pb2 import WorkerLost
from .dispatch import PendingCall
from .lanes.base import Connection
from .messages import Topic
from .peers import Peer
from .security import AcceptorHandshake

if TYPE_CHECKING:
    from .agent import Agent

logger = logging.getLogger("telegrad.rpc")


class Membership:
    """The driver of every ``Peer`` of one agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.on_lost: list[Callable[[Peer], None]] = []
        self.on_broken: list[Callable[[Peer], None]] = []
        agent.courier.on(Topic.MEMBERSHIP, self._told)

    # -- connections

    def admit(self, handshake: AcceptorHandshake, connection: Connection) -> str:
        """Whether a visitor who knows the secret is a worker of this job in its present life; why not, if not."""
        visitor, me = handshake.peer, self._agent.record
        if handshake.expected_identity != me.identity:
            return f"it dialed another life of a worker; this is {me.name!r} of process {me.process_id}"
        peer = next((peer for peer in self._agent.peers if peer.record.identity == visitor.identity), None)
        if peer is None:
            return f"worker {visitor.name!r} of process {visitor.process_id} is not in this job"
        if peer.gone:
            return f"worker {visitor.name!r} counts as lost here: {peer.gone}"
        connection.rank = peer.info.id
        with peer.lock:
            peer.accepted.append(connection)
        return ""

    def route(self, peer: Peer) -> Connection:
        """The connection for requests to ``peer``, dialed if need be."""
        connection = peer.dialed
        if connection is not None:
            return connection
        fresh = self._new_connection(peer)
        with peer.lock:
            if peer.dialed is not None:
                return peer.dialed
            peer.dialed = fresh
        fresh.start()
        return fresh

    def any_route(self, peer: Peer) -> Connection:
        """Any connection to ``peer``: control messages may travel on one that the peer dialed."""
        if not peer.open and (accepted := peer.accepted[-1:]):
            return accepted[0]
        return self.route(peer)

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
        self._agent.caller.fail_where(
            lambda call: call.to == connection.rank and call.connection not in (None, connection),
            lambda call: RpcError(
                f"the connection to worker {peer.info.name!r} broke during {call.what}; it may or may not have run there"
            ),
        )
        self._agent.courier.flush(peer)

    def disconnected(self, connection: Connection, error: Exception) -> None:
        """A connection ended: find out whether its peer is gone or only cut off."""
        peer = self._agent.peers.at(connection.rank)
        verdict = peer.disconnected(connection, error, self._agent.now(), self._agent.options.reconnect_timeout)
        if peer.gone:
            return
        if verdict:
            self.lose(peer, verdict)
            return
        for handler in self.on_broken:
            handler(peer)
        if peer.redial_at is not None:
            self._agent.wake_by(peer.redial_at)

    def tick(self, now: float) -> float | None:
        """Redial what is due; returns when to come back."""
        for peer in self._agent.peers.others():
            if peer.redial_at is not None and peer.redial_at <= now:
                peer.redial_at = None
                self.route(peer)
        times = [peer.redial_at for peer in self._agent.peers.others() if peer.redial_at is not None]
        return min(times, default=None)

    # -- verdicts

    def lose(self, peer: Peer, reason: str, tell: bool = True) -> None:
        """This life of the worker is over, whatever it may say later."""
        if not peer.leave(reason):
            return
        if not self._agent.leaving:
            logger.warning("worker %r (rank %d) is lost: %s", peer.info.name, peer.info.id, reason)
            if tell:
                self._tell_others(peer, reason)
        self._bury(peer)

    def _tell_others(self, peer: Peer, reason: str) -> None:
        message = WorkerLost(rank=peer.info.id, incarnation=peer.record.incarnation, reason=reason)
        for other in self._agent.peers.others():
            self._agent.courier.post(other, Topic.MEMBERSHIP, message.SerializeToString())

    def left(self, connection: Connection, reason: str) -> None:
        """The peer said goodbye."""
        peer = self._agent.peers.at(connection.rank)
        if peer.leave(reason):
            self._bury(peer)

    def _bury(self, peer: Peer) -> None:
        for connection in peer.connections():
            connection.close()
        self._agent.caller.fail_where(lambda call: call.to == peer.info.id, lambda call: peer.lost_error())
        for handler in self.on_lost:
            handler(peer)
        self._agent.courier.flush_drained()

    def _told(self, teller: Peer, payload: bytes) -> None:
        message = WorkerLost.FromString(payload)
        if message.rank == self._agent.rank:
            reason = f"worker {teller.info.name!r} counts this worker as lost ({message.reason})"
            logger.error("worker %r closes: %s", self._agent.name, reason)
            self._agent.run_later(lambda: self._agent.close(reason, farewell=False))
            return
        peer = self._agent.peers.at(message.rank)
        if peer.record.incarnation == message.incarnation:
            self.lose(peer, f"{message.reason}, says worker {teller.info.name!r}", tell=False)

    # -- looking

    def timeout_error(self, call: PendingCall) -> RpcTimeoutError:
        """What a call gets whose deadline passed."""
        connected = call.to >= 0 and self._agent.peers.at(call.to).open
        state = "it may still run there" if connected else "it never began" if call.to < 0 else "no connection was open"
        return RpcTimeoutError(
            f"{call.what} got no answer within {call.seconds:g} s ({state}); give it longer with timeout=, or "
            f"GrpcRpcBackendOptions(rpc_timeout=) for all calls"
        )

    def describe(self, peer: Peer) -> dict[str, Any]:
        """One peer, for ``debug_info``."""
        state = peer.gone or ("connected" if peer.open else "connecting" if peer.dialed else "not dialed")
        lane = peer.dialed.scheme if peer.dialed else None
        return {"rank": peer.info.id, "state": state, "lane": lane, "unacknowledged": peer.control.open}
