"""``Session``: what two workers have after a handshake, in the direction in which one of them dialed.

The caller dials, and the reply returns on the session of its request. So if two workers dial each other at the same time,
there are two sessions, and both are used.

A session has a pipe for small frames. It may have another one for large frames, so that a small frame never waits behind a
tensor. Small frames keep their order; between small and large ones there is no order. Frames may be sent before the session
is open: they wait in its first pipe, a ``WaitingPipe``. When the lane has decided which pipe carries them, ``use`` gives that
pipe what waits, in its order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from .late_frames import LateFrames
from .pipe import Pipe, Reading, Unsent, WaitingPipe

if TYPE_CHECKING:
    from .frame import FrameHandle


SHORT_BYTES = 8 * 1024  # a frame that is longer is not copied to leave with others


class Session(ABC):
    """One end of a session with one peer. ``flow`` is for the agent to use, which also sets ``late``.

    Attributes:
        number: number of the peer (``WorkerRecord.number``); -1 until the peer has proven which worker it is.
        scheme: name of the transport that carries its small frames now.
        lane_note: text for users: why there is no faster transport; empty if there is no reason to tell.
        opened: the handshake is over, and frames may leave. Until then they wait here.
        closed: it takes no more frames.
        late: frames that the next one takes along.
        reading: lets threads of the agent read what arrives; ``None`` while only the lane's own thread can read.
        small: pipe of small frames.
        large: pipe of large frames; ``None`` if they go by the other one.
    """

    number: int = -1
    scheme: str = ""
    lane_note: str = ""
    flow: Any = None
    late: LateFrames = LateFrames()
    opened: bool = False
    closed: bool = False
    reading: Reading | None = None
    small: Pipe
    large: Pipe | None = None

    def __init__(self) -> None:
        self._waiting = self.small = WaitingPipe()

    def start(self) -> None:
        """Begin to connect; for a dialed session, once. The listener is told the outcome, perhaps inside this call."""

    def send(self, parts: list[Any], handle: FrameHandle | None = None) -> bool:
        """Send one frame. Any thread. In a thread that may block, it blocks until a large frame has left.

        Args:
            parts: the frame, as bytes-like objects, the first of which is not empty; their memory may change afterwards.
            handle: withdraws the frame.

        Returns:
            False if the session is closed. True does not mean that the frame arrives: the session may still break.
        """
        if self.closed:
            return False
        size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        large = self.large
        pipe = self.small if large is None or size < large.least else large
        if (take := self.late.take) is not None:
            return self._send_with(take(), pipe, parts, size, handle)
        return pipe.send(parts, size, handle)

    def _send_with(
        self, others: list[list[Any]], pipe: Pipe, parts: list[Any], size: int, handle: FrameHandle | None
    ) -> bool:
        """Send a frame, and others in the same write if it is short. They may be lost."""
        short = pipe is self.small and size <= SHORT_BYTES
        after = [frame for frame in others if not (short and pipe.leave(frame))]
        sent = pipe.send(parts, size, handle)
        for frame in after:
            self.send(frame)
        return sent

    def use(self, pipe: Pipe, scheme: str) -> None:
        """Let small frames go by ``pipe`` from here on, beginning with those that wait. Once: the session is open then."""
        self.opened = True
        self._waiting.pass_on(pipe)
        self.small, self.reading, self.scheme = pipe, pipe.reading, scheme

    def take_unsent(self) -> Unsent:
        """Remove and return the frames with a handle of a session that ended before it was open. Any thread.

        None of these frames has left.
        """
        return [unsent for pipe in (self.small, self.large) if pipe is not None for unsent in pipe.take_unsent()]

    @abstractmethod
    def close(self, last: list[Any] | None = None) -> None:
        """Send what waits, then ``last`` as a final frame, then close. Any thread; returns at once."""
