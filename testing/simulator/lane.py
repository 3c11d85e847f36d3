"""Simulated lane: it listens, and makes sessions."""

from __future__ import annotations

from functools import partial

from ...proto.rpc_pb2 import WorkerRecord
from ...rpc.extend import Lane, LaneListener, Session
from .events import Process, State
from .network import Network
from .session import SCHEME, SimulatedSession

DIAL_AGAIN_SECONDS = 0.25


class SimulatedLane(Lane):
    """Lane of one simulated process."""

    scheme = SCHEME

    def __init__(self, network: Network, process: Process) -> None:
        self._network = network
        self._process = process
        self._addresses: list[str] = []

    def listen(self, listener: LaneListener, address: str | None) -> str:
        address = address or f"{SCHEME}://{self._process.rank}"
        self._network.listeners[address] = (self._process, listener)
        self._addresses.append(address)
        return address

    def dial(self, listener: LaneListener, peer: WorkerRecord, address: str) -> Session:
        session = SimulatedSession(
            self._network, self._process, listener, lambda: self._connect(session, peer, address)
        )
        session.number = peer.number
        return session

    def close(self) -> None:
        for address in self._addresses:
            self._network.listeners.pop(address, None)

    def _connect(self, end: SimulatedSession, peer: WorkerRecord, address: str) -> None:
        """Connect, or tell the dialer why it cannot."""
        self._look_later(end, peer, address)
        self._network.queue.after(self._network.latency(), None, "dial", lambda: self._knock(end, peer, address))

    def _look_later(self, end: SimulatedSession, peer: WorkerRecord, address: str) -> None:
        look = partial(self._look, end, peer, address)
        self._network.queue.after(2 * self._network.keepalive, end.process, "dial-timeout", look)

    def _look(self, end: SimulatedSession, peer: WorkerRecord, address: str) -> None:
        """Give up a dial that takes long, unless the system of its peer answers: a slow process may take any time."""
        process, _ = self._network.listeners.get(address, (None, None))
        silent = process is None or process.state is not State.RUNNING
        if silent or self._network.is_cut(end.process.rank, peer.number):
            end.give_up()
        elif not end.closed and not end.opened:
            self._look_later(end, peer, address)

    def _knock(self, end: SimulatedSession, peer: WorkerRecord, address: str) -> None:
        if end.closed or end.process.state is State.DEAD:
            return
        listening = self._network.listeners.get(address)
        joins = listening is not None and not listening[1].members_known().done()
        if joins or self._network.is_cut(end.process.rank, peer.number):
            self._network.queue.after(DIAL_AGAIN_SECONDS, None, "dial", lambda: self._knock(end, peer, address))
            return
        if listening is None:
            refused = ConnectionRefusedError(f"nobody listens at {address}")
            self._network.queue.after(self._network.latency(), end.process, "refused", lambda: end.fail(refused))
            return
        process, listener = listening
        if process.state is State.RUNNING:
            end.listener.answered(end)
        self._network.queue.add(
            self._network.queue.now + process.handshake_seconds(),
            process,
            "handshake",
            lambda: self._accept(end, process, listener, peer, address),
        )

    def _accept(
        self, end: SimulatedSession, process: Process, listener: LaneListener, peer: WorkerRecord, address: str
    ) -> None:
        if end.closed or end.process.state is State.DEAD:
            return
        theirs = SimulatedSession(self._network, process, listener)
        error = shake_hands(end.listener, listener, theirs, peer, address)
        if error is not None:
            self._network.queue.after(self._network.latency(), end.process, "refused", lambda: end.fail(error))
            return
        theirs.other, end.other = end, theirs
        self._network.opened(end)
        if not theirs.closed:
            self._network.opened(theirs)
        end.enqueue("connected", end.open)
        theirs.open()


def shake_hands(
    dialing: LaneListener, listening: LaneListener, theirs: Session, peer: WorkerRecord, address: str
) -> Exception | None:
    """Have two listeners authenticate each other, as every lane does; return why the dialer is refused."""
    dialer, acceptor = dialing.dialer_handshake(peer.identity, address), listening.acceptor_handshake()
    try:
        acceptor.check(dialer.prove(acceptor.challenge(dialer.hello())))
        dialer.check(acceptor.welcome(listening.admit(acceptor, theirs)))
    except Exception as error:
        return error
    return None
