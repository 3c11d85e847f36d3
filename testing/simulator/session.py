"""Sessions of the simulated network: a session is a stream of frames, until it breaks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...rpc.call_states import WRITTEN
from ...rpc.extend import FrameHandle, LaneListener, Pipe, Session, WaitingFrame
from ...rpc.lanes.frame import HEAD_BYTES
from .events import Action, Process

if TYPE_CHECKING:
    from .network import Network

SCHEME = "simulated"


class SimulatedSession(Session):
    """One end of a session; ``other`` is the end at the peer."""

    scheme = SCHEME

    def __init__(self, network: Network, process: Process, listener: LaneListener, dial: Action | None = None) -> None:
        super().__init__()
        self.network = network
        self.process = process
        self.listener = listener
        self.other: SimulatedSession | None = None
        self.broken = False  # what is sent from here on is lost
        self.dialed = dial is not None
        self._dial = dial
        self._held: deque[Action] = deque()  # what arrived while the link was cut
        self._latest = 0.0  # when the last frame arrives

    def start(self) -> None:
        if self._dial is not None:
            self._dial()

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
        """Close this end and tell its listener, once."""
        if self.closed:
            return
        self.closed = True
        self.network.closed(self)
        self.listener.disconnected(self, error)

    def give_up(self) -> None:
        """Close this end because the time to connect is over."""
        if self.opened or self.closed:
            return
        if self.other is not None:
            self.broken = self.other.broken = True
            self.network.break_end(self.other)
        self.fail(ConnectionResetError("it took the connection and said nothing"))

    def open(self) -> None:
        """Mark the session as open and send what waited. An acceptor may have sent its last frame and closed before."""
        if self.closed and self.dialed:
            return
        self.opened = True
        if self.dialed:
            self.listener.connected(self)
        self.use(SimulatedPipe(self), SCHEME)
        if self.closed:
            self._say_closed()

    def carry(self, frame: bytearray) -> None:
        """Send a frame over the network."""
        if self.other is not None and not self.broken:
            self.network.carry(self.other, frame)

    def enqueue(self, label: str, action: Action) -> None:
        """Have ``action`` arrive at this end, after all that was enqueued before."""
        self._latest = max(self._latest, self.network.queue.now + self.network.latency())
        self.network.queue.add(self._latest, self.process, label, lambda: self._arrive(action))

    def take(self, frame: bytearray) -> None:
        """Take a frame that arrived."""
        if not self.closed and self.opened:
            self.listener.received(self, frame, True)

    def release(self) -> None:
        """Deliver what a link held that is healed now."""
        held, self._held = self._held, deque()
        for action in held:
            self.network.queue.add(self.network.queue.now, self.process, "held", partial(self._arrive, action))

    def _arrive(self, action: Action) -> None:
        if self.other is not None and self.network.is_cut(self.process.rank, self.other.process.rank):
            self._held.append(action)
        else:
            action()


class SimulatedPipe(Pipe):
    """Frames from one end of a session to the other, over the simulated network."""

    def __init__(self, near: SimulatedSession) -> None:
        self._near = near

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        if handle is not None:
            handle.waiting, handle.state = None, WRITTEN
        self._near.carry(bytearray().join(parts))
        return True

    def add(self, frames: Iterable[WaitingFrame]) -> None:
        for waiting in frames:
            if (taken := waiting.take_back()) is not None:
                frame, handle = bytearray(taken[0]), taken[1]
                if handle is not None:
                    frame[:HEAD_BYTES] = handle.restamp(bytes(frame[:HEAD_BYTES]))
                self._near.carry(frame)
