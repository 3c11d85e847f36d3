"""``Pipe``: one means to send frames to a peer: a socket, a gRPC stream, or a call in the same process."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ...core.futures import Driver
from .frame import FrameHandle, WaitingFrame

Unsent = list[tuple[Any, FrameHandle]]


class Reading(Driver, Protocol):
    """Reading of a pipe in the threads that wait for its frames. The frames go to the lane's listener."""

    def linger(self, enough: Callable[[], object]) -> None:
        """Read for a moment, until ``enough()``: after the answer to a request the next request often follows soon."""
        ...


class Pipe(ABC):
    """One means by which an end of a session sends frames. ``session.py`` says which frames go by which pipe.

    Attributes:
        least: for a pipe of large frames, the bytes of the smallest frame that goes by it.
        reading: lets threads of the agent read what arrives; ``None`` if only the lane's own thread can read.
        over: completes on the loop with ``None`` when the peer has ended its side, or with the error that broke the pipe;
            ``None`` if the pipe has no end of its own, but ends with its session.
    """

    least = 0
    reading: Reading | None = None
    over: asyncio.Future[Exception | None] | None = None

    @abstractmethod
    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        """Send one frame, now or when there is room. Any thread. One that may block blocks until a large frame has left.

        Args:
            parts: the frame, as bytes-like objects, the first of which is not empty; their memory may change afterwards.
            size: its length in bytes.
            handle: withdraws the frame.

        Returns:
            False if the pipe is closed and takes no frame. The handle's state is then as before.
        """

    def leave(self, parts: list[Any]) -> bool:
        """Let a frame wait until the next one is sent, which must be soon; return False if frames do not wait here."""
        return False

    def add(self, frames: Iterable[WaitingFrame]) -> None:
        """Send frames that have waited in another pipe, before all others (``WaitingPipe.pass_on``)."""
        raise NotImplementedError(f"no frames wait for a {type(self).__name__}")

    def take_unsent(self) -> Unsent:
        """Remove and return the frames with a handle that wait in a pipe that was closed before it sent any. Any thread."""
        return []

    async def finish(self) -> None:
        """Send what waits, and end this side. On the loop."""

    def close(self) -> None:
        """Take no more frames, and free what the pipe holds. On the loop."""


class WaitingPipe(Pipe):
    """First pipe of a session: frames wait here, in their order, until it is decided which pipe they go by."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards what follows
        self._frames: list[WaitingFrame] = []
        self._next: Pipe | None = None
        self._closed = False

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        with self._lock:
            if (following := self._next) is None:
                if not self._closed:
                    self._frames.append(WaitingFrame(b"".join(parts), handle))
                return not self._closed
        return following.send(parts, size, handle)

    def pass_on(self, pipe: Pipe) -> None:
        """Give the frames that wait to another pipe, and all that come from here on."""
        while True:
            with self._lock:
                frames, self._frames = self._frames, []
                if not frames:
                    self._next = pipe
                    return
            pipe.add(frames)  # without the lock: a frame may arrive at once, and its receiver send one that waits here

    def take_unsent(self) -> Unsent:
        with self._lock:
            frames, self._frames = self._frames, []
        taken = filter(None, [frame.take_back() for frame in frames])
        return [(frame, handle) for frame, handle in taken if handle is not None]

    def close(self) -> None:
        with self._lock:
            self._closed = True
