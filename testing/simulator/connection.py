"""Connections of the simulated network: a connection is a stream, until it breaks."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from ...rpc.call_states import WRITTEN
from ...rpc.extend import Connection, LaneListener
from ...rpc.lanes.base import HEAD_BYTES, FrameHandle
from .events import Action, Process

if TYPE_CHECKING:
    from .network import Network

SCHEME = "simulated"


class SimulatedConnection(Connection):
    """End of a connection; ``other`` is the end at the peer."""

    scheme = SCHEME

    def __init__(self, network: Network, process: Process, listener: LaneListener, dial: Action | None = None) -> None:
        self.network = network
        self.process = process
        self.listener = listener
        self.other: SimulatedConnection | None = None
        self.closed = False
        self.broken = False  # what is sent from here on is lost
        self.dialed = dial is not None
        self._dial = dial
        self._waiting: list[tuple[bytearray, FrameHandle | None]] | None = []  # frames sent before it was open
        self._held: deque[Action] = deque()  # what arrived while the link was cut
        self._latest = 0.0  # when the last frame arrives

    def start(self) -> None:
        if self._dial is not None:
            self._dial()

    def send(self, parts: list[Any], handle: FrameHandle | None = None) -> bool:
        if self.closed:
            return False
        frame = bytearray().join(parts)
        if handle is not None:
            handle.state = WRITTEN
        if self._waiting is not None:
            self._waiting.append((frame, handle))
        elif not self.broken and self.other is not None:
            self.network.carry(self.other, frame)
        return True

    def withdraw(self, handle: FrameHandle) -> bool:
        waiting = self._waiting or []
        left = [(frame, other) for frame, other in waiting if other is not handle]
        if len(left) < len(waiting):
            self._waiting = left
        return len(left) < len(waiting)

    def take_unsent(self) -> list[tuple[Any, FrameHandle]]:
        waiting, self._waiting = self._waiting or [], []
        return [(frame, handle) for frame, handle in waiting if handle is not None]

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
        if self._waiting is None or self.closed:
            return
        if self.other is not None:
            self.broken = self.other.broken = True
            self.network.break_end(self.other)
        self.fail(ConnectionResetError("it took the connection and said nothing"))

    def open(self) -> None:
        """Mark the connection as open and send what waited. An acceptor may have sent its last frame and closed before."""
        if self.closed and self.dialed:
            return
        self.opened = True
        if self.dialed:
            self.listener.connected(self)
        waiting, self._waiting = self._waiting or [], None
        if self.other is not None and not self.broken:
            for frame, handle in waiting:
                if handle is not None:
                    frame[:HEAD_BYTES] = handle.restamp(bytes(frame[:HEAD_BYTES]))
                self.network.carry(self.other, frame)
        if self.closed:
            self._say_closed()

    def enqueue(self, label: str, action: Action) -> None:
        """Have ``action`` arrive at this end, after all that was enqueued before."""
        self._latest = max(self._latest, self.network.queue.now + self.network.latency())
        self.network.queue.add(self._latest, self.process, label, lambda: self._arrive(action))

    def take(self, frame: bytearray) -> None:
        """Take a frame that arrived."""
        if not self.closed and self._waiting is None:
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
