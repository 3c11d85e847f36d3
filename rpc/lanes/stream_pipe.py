"""``StreamPipe``: small frames on a stream socket (Unix, TCP or TLS). Any thread sends; ``reading.py`` says which one reads."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Sized
from select import EPOLLIN, EPOLLOUT
from typing import TYPE_CHECKING, Any

from ...core.futures import raised_by_handler
from ..threads.pool import MANY_REQUESTS
from ..threads.timers import Ticker
from .pipe import Pipe
from .reading import SharedReading
from .stream_reader import reader_of
from .stream_writer import TOGETHER, StreamWriter

if TYPE_CHECKING:
    from .frame import FrameHandle, WaitingFrame
    from .poller import Poller
    from .stream_socket import StreamSocket

LONG_BYTES = 512  # a frame that is longer waits for no others
CROWD = 64  # calls under way; if there are more, frames may wait to be written together
Deliver = Callable[[Any], None]
Progress = Callable[[], int]


class StreamPipe(Pipe):
    """Small frames on one socket. Made on the loop's thread; the socket is this object's from then on.

    Args:
        connected: the socket, non-blocking.
        poller: watches it.
        deliver: gets each frame that arrives, in the thread that reads; its memory is writable, and nothing else uses it.
        under_way: calls of the agent, and requests that have not begun (``LaneListener.under_way``).
        progress: returns how many of the messages that arrived here have been used.

    Attributes:
        reading: its turns of reading.
        deliver, progress: the arguments.
        unsent: frames that wait to be written.
        over: completes on the loop with ``None`` when the peer has ended its side, or with the error that broke the socket.
    """

    reading: SharedReading
    over: asyncio.Future[Exception | None]

    def __init__(
        self,
        connected: StreamSocket,
        poller: Poller,
        deliver: Deliver,
        under_way: tuple[Sized, Sized],
        progress: Progress,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.over = self.loop.create_future()
        self._socket = connected
        self._descriptor = connected.fileno()
        self._poller = poller
        self._flusher = Ticker(self.loop, self._flush_late)
        self._writer = StreamWriter(connected, self._watch_room, self._flusher.start, self._broke)
        self.deliver = deliver
        self._calls, self._requests = under_way
        self.progress = progress
        self.unsent = self._writer.waiting
        self._unread = 0  # calls that were sent since their thread looked for answers
        self.reading = SharedReading(self, self._descriptor, reader_of(connected).read, self.loop)
        self._followers = self.reading.followers  # looked at before each frame, without a call
        self._watching = threading.Lock()  # guards what follows
        self._events = EPOLLIN  # what to watch for
        self._told: int | None = EPOLLIN  # what the poller was told; None when it has forgotten this stream
        self._ended = False
        self._closed = False
        self._flushed: asyncio.Future[None] | None = None
        poller.add(self._descriptor, self, self._events)

    # -- writing

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        short = size < LONG_BYTES
        crowded = short and self.crowded()
        sent = None
        try:
            if short and self._followers and self.reading.writes_soon():
                sent = self._leave(parts, handle)
            else:
                sent = self._writer.send(parts, size, handle, not crowded)
        except OSError as error:  # nothing of the frame has left
            self._broke(error)
            if handle is not None:
                handle.given_back()
            sent = False
        finally:
            if sent is None:
                self._interrupted()
        if crowded and handle is not None:
            self._unread += 1
            if self._unread >= TOGETHER:
                self._unread = 0
                self.reading.glance()
        return sent

    def crowded(self) -> bool:
        """Return whether so many messages are under way that new ones may wait a moment, to leave together."""
        return len(self._calls) > CROWD or len(self._requests) > MANY_REQUESTS

    def _leave(self, parts: list[Any], handle: FrameHandle | None) -> bool:
        """Leave a frame to the thread that reads."""
        left = self._writer.leave(parts, handle) is not None
        if not self.reading.writes_soon():  # it stopped meanwhile
            self._writer.write_waiting()
        return left

    def add(self, frames: Iterable[WaitingFrame]) -> None:
        self._writer.add(frames)

    async def finish(self) -> None:
        """Send what waits, and end this side: the peer reads to the end, and then hears that it was the end."""
        self._writer.close()
        self._flushed = self.loop.create_future()
        self._flush()
        await self._flushed
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it is broken

    def fail(self, error: Exception) -> None:
        """Break this stream: something that belongs to it broke. Any thread."""
        self.end(error)

    def _watch_room(self, wanted: bool) -> None:
        with self._watching:
            self._watch(*((EPOLLOUT, 0) if wanted else (0, EPOLLOUT)))

    def flush_waiting(self) -> None:
        """Write what waits for others: this thread waits for an answer, or has nothing else to do. Any thread."""
        written = False
        try:
            self._writer.write_waiting()
            written = True
        finally:
            if not written:
                self._interrupted()

    def _broke(self, error: OSError) -> None:
        """End this stream after an error of the socket; one of a signal handler is raised."""
        if raised_by_handler(error):
            raise error
        self.end(error)

    def _interrupted(self) -> None:
        """End this stream, because a signal handler has raised something: it is unknown how much has left."""
        self.end(ConnectionResetError("a thread was interrupted while it wrote to the socket"))

    def _flush(self) -> None:
        try:
            if self._writer.flush():
                return
        except OSError as error:
            self.end(error)
        if self._flushed is not None and not self._flushed.done():
            self._flushed.set_result(None)

    # -- the loop

    def _flush_late(self) -> bool:
        """Write the frames that wait without need, every millisecond while there are any; return whether there were."""
        if waits := bool(self._writer.waiting):
            self._flush()
        return waits

    def ready(self, events: int) -> None:
        """Read and write what can be (``Poller``)."""
        if events & ~EPOLLOUT:
            self.reading.by_loop()
            if self.crowded():
                self.reading.pause()
        if events & EPOLLOUT:
            self._flush()

    # -- the end

    def close(self) -> None:
        """Drop what waits, and close the socket. On the loop."""
        self.end(None)
        self._writer.clear()
        self._flush()
        with self._watching:
            self._watch(0, EPOLLIN | EPOLLOUT)
            self._closed = True
        self.reading.close(self._socket.close)

    def end(self, error: Exception | None) -> None:
        """Read no more, and tell the session why, once."""
        if error is not None:
            # Its traceback holds the frames of the thread that used the socket: those of a waiting user, and all in them.
            error = error.with_traceback(None)
            self._writer.clear()  # also if it has ended before: the peer had ended its side
        with self._watching:
            if self._ended:
                return
            self._ended = True
            self._watch(0, EPOLLIN)
        self._on_loop(self._tell, error)

    def _on_loop(self, action: Callable[..., object], *args: Any) -> None:
        try:
            self.loop.call_soon_threadsafe(action, *args)
        except RuntimeError:
            pass  # the loop is closed, and the session with it

    def _tell(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(error)

    def watch_input(self, wanted: bool) -> None:
        with self._watching:
            self._watch(*((EPOLLIN, 0) if wanted else (0, EPOLLIN)))

    def _watch(self, more: int, less: int) -> None:
        # lock held
        if self._closed or (self._told is None and not more & EPOLLOUT):
            return
        if self._told is None:
            raise BrokenPipeError("the peer has ended the stream")
        events = (self._events | more) & ~less
        if self._ended:
            events &= ~EPOLLIN  # a thread may leave the reading late
        self._events = events
        if self._ended and not events:
            # Also if it was not watched: the poller would keep this stream, and its epoll would report the hang-up for ever.
            self._poller.remove(self._descriptor)
            self._told = None
        elif events != self._told:
            self._poller.watch(self._descriptor, events)
            self._told = events
