"""The simulated lane, and what goes wrong on it.

A lane promises that a connection is a stream: frames arrive in order and once while it stands, and are lost only when it
breaks; a request may have run although its answer is lost. So every frame may be late, and everything after it; a
connection may *break*, and each end hears of it on its own; a *cut* link between two workers is silent, delivers what it
holds if it heals soon enough, and else its connections break by keepalive; dials over it get no answer. A stopped process
is silent too. At a dead one connections break and dials are refused.

The control channel promises more than that: exactly once, whatever is beneath it. So its frames (messages,
acknowledgements, and both on their way through a third worker) are also *dropped*, *repeated* and *reordered* in a
connection that stands. The ownership protocol promises the same of messages that carry references, so those are repeated
too.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from functools import partial
from typing import Any

from ...proto.telegrad_pb2 import WorkerRecord
from ...rpc.extend import Connection, Host, Kind, Lane
from ...rpc.lanes.base import HEAD_BYTES, Ticket
from ...rpc.wire.frames import decode
from ...rref.interceptor import NUMBER as REFERENCES
from .events import Action, EventQueue, Process, State

SCHEME = "simulated"
LATENCY_SECONDS = 0.002
LATE_SECONDS = 1.0
DIAL_AGAIN_SECONDS = 0.25
CONTROL = (Kind.CONTROL, Kind.ACKNOWLEDGE, Kind.RELAY)
KIND_NAMES = {value: name.lower() for name, value in vars(Kind).items() if isinstance(value, int)}


class Rates:
    """Probabilities of what may happen to one frame."""

    def __init__(self, delay: float = 0.0, reorder: float = 0.0, repeat: float = 0.0, drop: float = 0.0) -> None:
        self.delay = delay
        self.reorder = reorder
        self.repeat = repeat
        self.drop = drop


class Network:
    """Connections between the processes of a simulation."""

    def __init__(self, queue: EventQueue, rng: random.Random, keepalive: float) -> None:
        self.queue = queue
        self.rates = Rates()
        self.counts: Counter[str] = Counter()
        self.keepalive = keepalive
        self.listeners: dict[str, tuple[Process, Host]] = {}
        self._rng = rng
        self._ends: dict[SimulatedConnection, None] = {}  # open ones, in the order in which they were made
        self._cuts: dict[frozenset[int], int] = {}  # links that are cut, each with the number of its cut
        self._cut_number = 0

    # -- faults

    def is_cut(self, one: int, other: int) -> bool:
        """Whether the link between two workers is cut."""
        return bool(self._cuts) and frozenset((one, other)) in self._cuts

    def cut(self, one: int, other: int) -> None:
        """Make a link silent. Its connections break if it stays so for too long."""
        link = frozenset((one, other))
        if link in self._cuts:
            return
        self._cut_number += 1
        self._cuts[link] = number = self._cut_number
        self.queue.after(self._silence(), None, f"keepalive {one}-{other}", lambda: self._silent(link, number))

    def heal(self, one: int, other: int) -> None:
        """Undo ``cut``: what the link held arrives now."""
        if self._cuts.pop(frozenset((one, other)), None) is None:
            return
        for end in self._between(frozenset((one, other))):
            end.release()
            if end.other is not None and end.other.process.state is State.DEAD:
                self._break_end(end)

    def heal_all(self) -> None:
        """Undo every cut."""
        for link in list(self._cuts):
            self.heal(*link)

    def break_one(self) -> bool:
        """Break a connection chosen at random; what is on its way on it may be lost. False if there is none."""
        dialed = [end for end in self._ends if end.dialed and end.other is not None and not end.broken]
        if not dialed:
            return False
        self._break(self._rng.choice(dialed))
        return True

    def silence(self, process: Process) -> None:
        """A process was stopped: connections to it break if it stays so for too long."""
        self.queue.after(self._silence(), None, f"keepalive {process.rank}", lambda: self._stopped(process))

    def kill(self, process: Process) -> None:
        """A process died: nobody listens there, and its connections break."""
        for address in [address for address, (owner, _) in self.listeners.items() if owner is process]:
            del self.listeners[address]
        for end in [end for end in self._ends if end.process is process]:
            del self._ends[end]
            end.closed = True
            if end.other is not None and not self.is_cut(process.rank, end.other.process.rank):
                self._break_end(end.other)

    def _silence(self) -> float:
        return self.keepalive * (1.0 + self._rng.random())

    def _silent(self, link: frozenset[int], number: int) -> None:
        if self._cuts.get(link) == number:
            for end in self._between(link):
                end.broken = True
                self._break_end(end)

    def _stopped(self, process: Process) -> None:
        if process.state is State.STOPPED:
            for end in [end for end in self._ends if end.process is process and end.other is not None]:
                self._break(end)

    def _between(self, link: frozenset[int]) -> list[SimulatedConnection]:
        return [
            end for end in self._ends if end.other is not None and link == {end.process.rank, end.other.process.rank}
        ]

    def _break(self, end: SimulatedConnection) -> None:
        assert end.other is not None
        end.broken = end.other.broken = True
        self._break_end(end)
        self._break_end(end.other)

    def _break_end(self, end: SimulatedConnection) -> None:
        error = ConnectionResetError("the simulated connection broke")
        self.queue.after(self.latency(), end.process, "break", lambda: end.fail(error))

    # -- frames

    def latency(self) -> float:
        """Seconds that a frame travels."""
        if self._rng.random() < self.rates.delay:
            self.counts["delay"] += 1
            return self._rng.random() * LATE_SECONDS
        return LATENCY_SECONDS * (0.1 + self._rng.random())

    def opened(self, end: SimulatedConnection) -> None:
        """A connection was made."""
        self._ends[end] = None

    def closed(self, end: SimulatedConnection) -> None:
        """An end was closed."""
        self._ends.pop(end, None)

    def carry(self, target: SimulatedConnection, frame: bytearray) -> None:
        """Take a frame to the other end."""
        kind = frame[0]
        label = f"{KIND_NAMES.get(kind, kind)} to w{target.process.rank}"
        deliver = partial(target.take, frame)
        if kind in CONTROL and self._mistreat(target, label, deliver):
            return
        target.enqueue(label, deliver)
        if self._rng.random() < self.rates.repeat and (kind in CONTROL or carries_references(frame)):
            self.counts["repeat"] += 1
            again = partial(target.take, bytearray(frame))
            self.queue.after(self._rng.random() * LATE_SECONDS, target.process, f"repeated {label}", again)

    def _mistreat(self, target: SimulatedConnection, label: str, deliver: Action) -> bool:
        draw = self._rng.random()
        if draw < self.rates.drop:
            self.counts["drop"] += 1
            return True
        if draw < self.rates.drop + self.rates.reorder:
            self.counts["reorder"] += 1
            self.queue.after(self._rng.random() * LATE_SECONDS, target.process, f"reordered {label}", deliver)
            return True
        return False

    # -- dials

    def dial(self, end: SimulatedConnection, peer: WorkerRecord, address: str) -> None:
        """Connect, or tell the dialer why not."""
        self.queue.after(2 * self.keepalive, end.process, "dial-timeout", end.give_up)
        self.queue.after(self.latency(), None, "dial", lambda: self._knock(end, peer, address))

    def _knock(self, end: SimulatedConnection, peer: WorkerRecord, address: str) -> None:
        if end.closed or end.process.state is State.DEAD:
            return
        if self.is_cut(end.process.rank, peer.rank):
            self.queue.after(DIAL_AGAIN_SECONDS, None, "dial", lambda: self._knock(end, peer, address))
            return
        listener = self.listeners.get(address)
        if listener is None:
            refused = ConnectionRefusedError(f"nobody listens at {address}")
            self.queue.after(self.latency(), end.process, "refused", lambda: end.fail(refused))
            return
        process, host = listener
        self.queue.add(self.queue.now, process, "handshake", lambda: self._accept(end, process, host, peer, address))

    def _accept(self, end: SimulatedConnection, process: Process, host: Host, peer: WorkerRecord, address: str) -> None:
        if end.closed or end.process.state is State.DEAD:
            return
        theirs = SimulatedConnection(self, process, host)
        error = shake_hands(end.host, host, theirs, peer, address)
        if error is not None:
            self.queue.after(self.latency(), end.process, "refused", lambda: end.fail(error))
            return
        theirs.other, end.other = end, theirs
        self.opened(end)
        if not theirs.closed:
            self.opened(theirs)
        end.enqueue("connected", end.open)
        theirs.open()


class SimulatedConnection(Connection):
    """One end of a connection; ``other`` is the end at the peer."""

    scheme = SCHEME

    def __init__(self, network: Network, process: Process, host: Host, dial: Action | None = None) -> None:
        self.network = network
        self.process = process
        self.host = host
        self.other: SimulatedConnection | None = None
        self.closed = False
        self.broken = False  # what is sent from here on is lost
        self.dialed = dial is not None
        self._dial = dial
        self._waiting: list[tuple[bytearray, Ticket | None]] | None = []  # frames sent before it was open
        self._held: deque[Action] = deque()  # what arrived while the link was cut
        self._latest = 0.0  # when the last frame arrives

    def start(self) -> None:
        if self._dial is not None:
            self._dial()

    def send(self, parts: list[Any], ticket: Ticket | None = None) -> bool:
        if self.closed:
            return False
        frame = bytearray().join(parts)
        if self._waiting is not None:
            self._waiting.append((frame, ticket))
        elif not self.broken and self.other is not None:
            self.network.carry(self.other, frame)
        return True

    def withdraw(self, ticket: Ticket) -> bool:
        waiting = self._waiting or []
        left = [(frame, other) for frame, other in waiting if other is not ticket]
        if len(left) < len(waiting):
            self._waiting = left
        return len(left) < len(waiting)

    def close(self, last: list[Any] | None = None) -> None:
        if self.closed:
            return
        if last is not None:
            self.send(last)
        self._say_closed()
        self.fail(ConnectionError("closed by this worker"))

    def _say_closed(self) -> None:
        other = self.other
        if other is not None and not self.broken:
            other.enqueue("close", lambda: other.fail(ConnectionResetError("closed by the peer")))

    def fail(self, error: Exception) -> None:
        """Close this end and tell its host, once."""
        if self.closed:
            return
        self.closed = True
        self.network.closed(self)
        self.host.disconnected(self, error)

    def give_up(self) -> None:
        """The time to connect is over."""
        if self._waiting is None or self.closed:
            return
        if self.other is not None:
            self.broken = self.other.broken = True
            self.network._break_end(self.other)
        self.fail(ConnectionResetError("it took the connection and said nothing"))

    def open(self) -> None:
        """The connection stands: send what waited. An acceptor may have sent its last word and closed before."""
        if self.closed and self.dialed:
            return
        if self.dialed:
            self.host.connected(self)
        waiting, self._waiting = self._waiting or [], None
        if self.other is not None and not self.broken:
            for frame, ticket in waiting:
                if ticket is not None:
                    frame[:HEAD_BYTES] = ticket.restamp(bytes(frame[:HEAD_BYTES]))
                self.network.carry(self.other, frame)
        if self.closed:
            self._say_closed()

    def enqueue(self, label: str, action: Action) -> None:
        """Let ``action`` arrive at this end, after all that was enqueued before."""
        self._latest = max(self._latest, self.network.queue.now + self.network.latency())
        self.network.queue.add(self._latest, self.process, label, lambda: self._arrive(action))

    def take(self, frame: bytearray) -> None:
        """A frame arrived."""
        if not self.closed and self._waiting is None:
            self.host.received(self, frame, True)

    def release(self) -> None:
        """The link was healed: what it held arrives."""
        held, self._held = self._held, deque()
        for action in held:
            self.network.queue.add(self.network.queue.now, self.process, "held", partial(self._arrive, action))

    def _arrive(self, action: Action) -> None:
        if self.other is not None and self.network.is_cut(self.process.rank, self.other.process.rank):
            self._held.append(action)
        else:
            action()


class SimulatedLane(Lane):
    """The lane of one simulated process."""

    scheme = SCHEME

    def __init__(self, network: Network, process: Process) -> None:
        self._network = network
        self._process = process

    def listen(self, host: Host, address: str | None) -> str:
        address = address or f"{SCHEME}://{self._process.rank}"
        self._network.listeners[address] = (self._process, host)
        return address

    def dial(self, host: Host, peer: WorkerRecord, address: str) -> Connection:
        connection = SimulatedConnection(
            self._network, self._process, host, lambda: self._network.dial(connection, peer, address)
        )
        connection.rank = peer.rank
        return connection

    def close(self) -> None:
        for address, (process, _) in list(self._network.listeners.items()):
            if process is self._process:
                del self._network.listeners[address]


def shake_hands(
    dialing: Host, listening: Host, theirs: Connection, peer: WorkerRecord, address: str
) -> Exception | None:
    """Let two hosts prove who they are, as every lane does; returns why the dialer is refused."""
    dialer, acceptor = dialing.dialer_handshake(peer.identity, address), listening.acceptor_handshake()
    try:
        acceptor.check(dialer.prove(acceptor.challenge(dialer.hello())))
        dialer.check(acceptor.welcome(listening.admit(acceptor, theirs)))
    except Exception as error:
        return error
    return None


def carries_references(frame: bytearray) -> bool:
    """Whether a request or a reply brings references (its receiver refuses a repetition of such a message)."""
    return frame[0] in (Kind.REQUEST, Kind.REPLY) and REFERENCES in decode(bytearray(frame), True, 0).extras
