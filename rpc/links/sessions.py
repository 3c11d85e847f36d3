"""Sessions of one agent to the other workers: it dials, redials, admits those that dial, and handles the lanes' events."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...core.futures import Future
from ..lanes.addresses import check_exposure, host_of, join_address, port_of
from ..lanes.inproc import InProcessLane, InProcessNetwork
from ..lanes.lane import Lane, LaneListener
from ..lanes.session import Session
from ..wire.control import expelled
from .link import ROUTES, LinkAction, LinkState
from .peer import Peer
from .refusals import Refusals

if TYPE_CHECKING:
    from ..flow.flow import Flow
    from ..lanes.large.landing import Landing
    from ..options import GrpcRpcBackendOptions
    from ..security.handshake import AcceptorHandshake, Credentials, DialerHandshake
    from ..state import AgentState
    from ..threads.timers import Timers
    from .peers import Peers

PeerHandler = Callable[[Peer], None]
Receiver = Callable[[Session, Any, bool], None]
Landings = Callable[[Session, memoryview, int], "Landing | None"]


class Sessions(LaneListener):
    """Every session of one agent, dialed by it or by others.

    Requests travel on sessions that this worker dialed, control messages on any.

    Args:
        state: the agent's state.
        me: its credentials.
        peers: the workers of the job.
        lanes: its transports; the first that both sides know is used.
        new_flow: makes the flow control of a session.
        timers: for redials.
        options: of the agent.

    Attributes:
        known: completes when the workers of the job are known.
        received: takes each frame that arrives (``LaneListener.received``): the agent's receiver, without a call between.
        landing: finds memory for the large piece of an answer (``LaneListener.landing``): the agent's caller.
        on_dialed: called with a peer and the session to it that this worker dialed, when that is open.
        on_opened: called with a peer after a session to it opened.
        on_ended: called with a peer after a session to it ended, or could not be made.
        on_broken: called with a peer, unless it is lost, and an open session to it that ended: messages may be lost.
    """

    def __init__(
        self,
        state: AgentState,
        me: Credentials,
        peers: Peers,
        lanes: Iterable[Lane],
        new_flow: Callable[[Session], Flow],
        timers: Timers,
        options: GrpcRpcBackendOptions,
    ) -> None:
        self.lanes = {lane.scheme: lane for lane in lanes}
        self.keepalive = options.keepalive
        self.tls = me.tls
        self.refusals = Refusals(state.name, timers.now)
        self.known: Future[None] = Future()
        self.received: Receiver
        self.landing: Landings
        self.on_dialed: list[Callable[[Peer, Session], None]] = []
        self.on_opened: list[PeerHandler] = []
        self.on_ended: list[PeerHandler] = []
        self.on_broken: list[Callable[[Peer, Session], None]] = []
        self._state = state
        self.me = me
        self._peers = peers
        self.new_flow = new_flow
        self._timers = timers
        self._reconnect_timeout = options.reconnect_timeout
        self._secured = me.tls is not None or options.insecure
        self._listen_host = options.listen_host or os.environ.get("TELEGRAD_LISTEN_HOST")
        self._own_lane = InProcessLane(InProcessNetwork())  # to this worker itself
        self._own_address = ""

    def listen(self, address: str | None) -> None:
        """Accept sessions on every lane.

        Args:
            address: "host:port", where others reach the first lane; the other lanes get free ports of that host. ``None`` for
                free ports of the loopback interface.

        Raises:
            RendezvousError: the address is in use or not of this machine, or is on a network and there is no TLS.
        """
        host = host_of(address) if address else None
        for argument, asked in (
            ("this worker's address (host= or TELEGRAD_HOST)", host),
            ("listen_host= (or TELEGRAD_LISTEN_HOST)", self._listen_host),
        ):
            if asked is not None:
                check_exposure(argument, asked, self._secured)
        addresses = self.me.record.addresses
        for lane in self.lanes.values():
            addresses.append(self._listen_on(lane, address, host))
            addresses.extend(lane.offers)
            address = address and join_address(host or "", 0)
        self._own_address = self._own_lane.listen(self, addresses[0])

    def _listen_on(self, lane: Lane, address: str | None, host: str | None) -> str:
        """Let a lane listen, and return the address to announce."""
        if host is None or self._listen_host is None:
            return lane.listen(self, address)
        bound = lane.listen(self, join_address(self._listen_host, port_of(address or ""), wildcard=True))
        return f"{lane.scheme}://{join_address(host, port_of(bound))}"

    def close(self) -> None:
        """Stop listening and free what the lanes hold."""
        for peer in self._peers.met():
            self.peer_lost(peer)
        for lane in (*self.lanes.values(), self._own_lane):
            lane.close()

    # -- dialing

    def route(self, peer: Peer) -> Session:
        """Return the session for requests to ``peer``; dial if there is none.

        Raises:
            LinkCutError: the link is cut.
            WorkerLostError: the worker is gone.
        """
        if peer.link.state is LinkState.CUT:
            raise peer.cut_error()
        session = peer.link.dialed or self.dial(peer)
        if session is None:
            raise peer.lost_error()
        return session

    def dial_missing(self, peer: Peer) -> None:
        """Dial ``peer`` unless there is a session, or one is being made."""
        if not peer.linked and peer.link.dialed is None:
            self.dial(peer)

    def dial(self, peer: Peer) -> Session | None:
        """Return a new session to ``peer``, or the one that another thread dialed at the same time.

        Returns:
            ``None`` if the worker is gone.
        """
        fresh, link, started = self._new_session(peer), peer.link, False
        fresh.flow, fresh.late = self.new_flow(fresh), peer.late
        try:
            with peer.lock:
                if not link.dials:
                    started = True
                    return link.dialed
                if link.kept is not None:  # the calls that are queued there were never sent
                    link.kept.flow.move(fresh)
                link.dial(fresh)
            fresh.start()
            started = True
        finally:
            if not started:  # no other thread would start it, and the next call dials again
                peer.found_closed(fresh, self._timers.now(), ROUTES)
                fresh.close()
        self._close_if_late(fresh)
        return fresh

    def _close_if_late(self, session: Session) -> None:
        """Close a session that a peer got while the agent closed, and which the agent may not have found there."""
        if self._state.closed:
            session.close()

    def _new_session(self, peer: Peer) -> Session:
        if peer.number == self._state.number:
            return self._own_lane.dial(self, peer.record, self._own_address)
        for scheme, lane in self.lanes.items():
            for address in peer.record.addresses:
                if address.startswith(f"{scheme}://"):
                    return lane.dial(self, peer.record, address)
        raise RpcError(
            f"worker {peer.info.name!r} listens at {', '.join(peer.record.addresses)}, which none of this worker's lanes "
            f"({', '.join(self.lanes)}) reaches; give every worker the same lanes="
        )

    def redial_in_time(self, peer: Peer) -> None:
        """Dial a peer when that is due, if it is."""
        if peer.link.redial_at is not None:
            self._timers.at(peer.link.redial_at, self._redial, peer)

    def _redial(self, peer: Peer) -> None:
        """Dial a peer whose session ended, unless it was dialed already or is to be dialed later."""
        due = peer.link.redial_at
        if due is not None and due <= self._timers.now() and not self._state.closed:
            self.dial(peer)

    def peer_lost(self, peer: Peer) -> None:
        """Drop the calls to a peer that is gone which are queued on a session that ended before it was open."""
        with peer.lock:
            kept, peer.link.kept = peer.link.kept, None
        if kept is not None:
            kept.flow.close()

    # -- events of lanes (lanes.lane.LaneListener)

    def dialer_handshake(self, expected_identity: bytes, address: str, certificate: bytes = b"") -> DialerHandshake:
        return self.me.dialer_handshake(expected_identity, address, certificate)

    def acceptor_handshake(self) -> AcceptorHandshake:
        return self.me.acceptor_handshake()

    def members_known(self) -> Future[None]:
        return self.known

    def admit(self, handshake: AcceptorHandshake, session: Session) -> str:
        joiner, me = handshake.peer, self.me.record
        if handshake.expected_identity != me.identity:
            return f"it dialed another incarnation; this is {me.name!r} of process {me.process_id}"
        peer = self._peers.member(joiner)
        if peer is None or peer.record.certificate_name != joiner.certificate_name:
            return f"worker {joiner.name!r} of process {joiner.process_id} is not in this job"
        session.number, session.flow, session.late = peer.number, self.new_flow(session), peer.late
        if not peer.admitted(session):
            # It is admitted only to get this message: a refusal would look as if another worker had this address.
            session.close(expelled(peer.gone))
            return ""
        self._close_if_late(session)
        _call(self.on_opened, peer)
        return ""

    def progress(self, session: Session) -> int:
        messages: int = session.flow.receipts.messages
        return messages

    def refused(self, address: str, reason: str) -> None:
        self.refusals.add(address, reason)

    def answered(self, session: Session) -> None:
        if session.number >= 0:  # else it is a session of the rendezvous
            self._peers.at(session.number).answered(self._timers.now())

    def connected(self, session: Session) -> None:
        peer = self._peers.at(session.number)
        if LinkAction.ANNOUNCE not in peer.opened(session):
            return
        _call(self.on_opened, peer)
        for handler in self.on_dialed:
            handler(peer, session)

    def disconnected(self, session: Session, error: Exception) -> None:
        peer = None if self._state.closed or session.number < 0 else self._peers.at(session.number)
        if peer is not None:
            peer.ended(session, error, self._timers.now(), self._reconnect_timeout)
        if (peer is None or peer.gone or session.opened) and session.flow is not None:
            session.flow.close()  # else what waits in it goes by the next one
        if peer is None or peer.gone:
            return
        _call(self.on_ended, peer)
        if peer.gone:
            return
        if session.opened:
            for handler in self.on_broken:
                handler(peer, session)
        self.redial_in_time(peer)


def _call(handlers: list[PeerHandler], peer: Peer) -> None:
    for handler in handlers:
        handler(peer)
