"""``StreamPipe``: small frames on a stream socket (Unix, TCP or TLS). Any thread sends; ``reading.py`` says which one reads.

The thread that sends a frame writes it itself (``StreamWriter``); what the socket has no room for waits.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sized
from typing import TYPE_CHECKING, Any

from ...core.futures import raised_by_handler
from ..call_states import WRITTEN
from ..threads.ioloop import call_if_open
from ..threads.pool import MANY_REQUESTS
from ..threads.timers import Ticker
from .frame import BATCH_BYTES, FRAME_LENGTH, SCATTERED, FrameHandle, WaitingFrame
from .pipe import Pipe
from .poller import SocketWatch
from .reading import CROWD, SharedReading
from .stream_reader import reader_of

if TYPE_CHECKING:
    from .poller import Poller
    from .stream_socket import StreamSocket

LONG_BYTES = 512  # a frame that is longer waits for no others
TOGETHER = 64  # frames that wait without need are written when they are so many
SMALL_WRITE_BYTES = 8 * 1024  # to join the parts of a frame up to this takes less time than to tell the system of each
MOST_PARTS = 512  # of one write; the system takes 1024
Progress = Callable[[], int]


class StreamPipe(Pipe):
    """Small frames on one socket. Made on the loop's thread; the socket is this object's from then on.

    Args:
        connected: the socket, non-blocking.
        poller: watches it.
        received: gets each frame that arrives, in the thread that reads, and True: nothing else uses its memory.
        under_way: calls of the agent, and requests that have not begun (``LaneListener.under_way``).
        progress: returns how many of the messages that arrived here have been used.

    Attributes:
        reading: its turns of reading.
        progress: the argument.
        scattered: takes the notice of a frame whose pieces came by the pipe of large frames, while there is one.
        unsent: frames that wait to be written.
        over: completes on the loop with ``None`` when the peer has ended its side, or with the error that broke the socket.
    """

    reading: SharedReading
    over: asyncio.Future[Exception | None]

    def __init__(
        self,
        connected: StreamSocket,
        poller: Poller,
        received: Callable[[Any, bool], None],
        under_way: tuple[Sized, Sized],
        progress: Progress,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.over = self.loop.create_future()
        self._socket = connected
        self._flusher = Ticker(self.loop, self._flush_late)
        self._watch = SocketWatch(poller, connected.fileno(), self)
        self._writer = StreamWriter(connected, self._watch.room, self._flusher.start, self._broke)
        self._received = received
        self.scattered: Callable[[Any], None] | None = None
        self.under_way = self._calls, self._requests = under_way
        self.progress = progress
        self.unsent = self._writer.waiting
        self._unread = 0  # calls that were sent since their thread looked for answers
        self.watch_input = self._watch.input
        self.reading = SharedReading(self, connected.fileno(), reader_of(connected).read, self.loop)
        self.ready = self.reading.by_loop  # for the poller
        self._followers = self.reading.followers  # looked at before each frame, without a call
        self._flushed: asyncio.Future[None] | None = None

    # -- writing

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        short = size < LONG_BYTES
        # ``SharedReading.crowded``, without a call
        crowded = short and (len(self._calls) > CROWD or len(self._requests) > MANY_REQUESTS)
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

    def leave(self, parts: list[Any]) -> bool:
        return self._writer.leave(parts, None) is not None

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
        self.flush_room()
        await self._flushed
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it is broken

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

    def flush_room(self) -> None:
        try:
            if self._writer.flush():
                return
        except OSError as error:
            self.end(error)
        if self._flushed is not None and not self._flushed.done():
            self._flushed.set_result(None)

    # -- reading

    def deliver(self, frame: Any) -> None:
        """Take a frame that was read, in the thread that reads."""
        if self.scattered is not None and frame and frame[0] & SCATTERED:
            self.scattered(frame)
        else:
            self._received(frame, True)

    # -- the loop

    def _flush_late(self) -> bool:
        """Write the frames that wait without need, every millisecond while there are any; return whether there were."""
        if waits := bool(self._writer.waiting):
            self.flush_room()
        return waits

    # -- the end

    def close(self) -> None:
        """Drop what waits, and close the socket. On the loop."""
        self.end(None)
        self._writer.clear()
        self.flush_room()
        self._watch.close()
        self.reading.close(self._socket.close)

    def end(self, error: Exception | None) -> None:
        """Read no more, and tell the session why, once: an error, or ``None`` at the peer's end. Any thread."""
        if error is not None:
            # Its traceback holds the frames of the thread that used the socket: those of a waiting user, and all in them.
            error = error.with_traceback(None)
            self._writer.clear()  # also if it has ended before: the peer had ended its side
        if self._watch.end():
            call_if_open(self.loop, self._tell, error)

    def _tell(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(error)


class StreamWriter:
    """Writes frames to a non-blocking socket, in the order in which they were sent. Any thread.

    Args:
        target: the socket.
        watch_room: told whether something waits for room: then ``flush`` must be called when the socket has some.
        flush_soon: told that frames wait for others: then ``flush`` must be called in a moment.
        broke: called with the error if the socket is found broken while frames that have waited are written.

    Attributes:
        waiting: frames that wait, to be looked at only.
    """

    def __init__(
        self,
        target: StreamSocket,
        watch_room: Callable[[bool], None],
        flush_soon: Callable[[], object],
        broke: Callable[[OSError], object],
    ) -> None:
        self._target = target
        self._watch_room = watch_room
        self._flush_soon = flush_soon
        self._broke = broke
        self._watches = False  # for room
        self._lock = threading.Lock()
        # Held by a thread that sends, which looks at ``waiting`` afterwards. Others do not wait for it: the one that got it
        # would wait for the interpreter next, and all others for the lock meanwhile, each time.
        self._turn = threading.Lock()
        self._closed = False
        self._rest: memoryview = memoryview(b"")  # of what has left in part
        self.waiting: deque[WaitingFrame] = deque()

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None, at_once: bool = True) -> bool:
        """Write one frame, or let it wait.

        Args:
            parts: the frame; their memory may change afterwards.
            size: its length in bytes.
            handle: names it, so that it can be withdrawn while it waits.
            at_once: write it now if there is room; else it may wait for others, to be written with them.

        Returns:
            False if this writer is closed.

        Raises:
            OSError: the socket is broken, and nothing of the frame has left.
        """
        if not at_once or self.waiting:
            return self._add(parts, handle, at_once)
        if not self._turn.acquire(blocking=False):
            return self._add(parts, handle, at_once)
        try:
            sent = self._write(parts, size, handle)
        finally:
            self._turn.release()
        if sent is None:
            return self._add(parts, handle, at_once)
        if self.waiting:
            self.write_waiting()
        return sent

    def _write(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool | None:
        """Write one frame; return ``None`` if it must wait for others, or for room."""
        with self._lock:
            if self._closed:
                return False
            if self._rest or self.waiting:
                return None
            if handle is not None:
                handle.waiting, handle.state = None, WRITTEN
            data = (FRAME_LENGTH.pack(size), *parts)
            try:
                if size <= SMALL_WRITE_BYTES or len(data) > MOST_PARTS:
                    sent = self._target.send(b"".join(data))
                else:
                    sent = self._target.sendmsg(data)
            except BlockingIOError:
                sent = 0
            if sent < size + FRAME_LENGTH.size:
                self._rest = memoryview(b"".join(data))[sent:]
                self._wait_for_room(True)
        return True

    def leave(self, parts: list[Any], handle: FrameHandle | None) -> WaitingFrame | None:
        """Let one frame wait until a thread calls ``write_waiting``; return ``None`` if this writer is closed.

        Args:
            parts, handle: as for ``send``.
        """
        frame = WaitingFrame(b"".join(parts), handle)
        self.waiting.append(frame)
        if not self._closed or frame.take_back() is None:
            return frame
        if handle is not None:
            handle.given_back()
        return None

    def _add(self, parts: list[Any], handle: FrameHandle | None, at_once: bool) -> bool:
        if self.leave(parts, handle) is None:
            return False
        if at_once or len(self.waiting) >= TOGETHER:
            self.write_waiting()
        else:
            self._flush_soon()
        return True

    def write_waiting(self) -> None:
        """Write what waits, unless another thread writes, which then does so. Any thread.

        An error of the socket is not raised: it says nothing of the frame that this thread sends, which may have left.
        """
        try:
            while self.waiting:
                if not self._turn.acquire(blocking=False):
                    return
                try:
                    full = self.flush()
                finally:
                    self._turn.release()
                if full:
                    self._leave_to_loop()
                    return
        except OSError as error:
            self._broke(error)

    def _leave_to_loop(self) -> None:
        """Have the loop write what has no room. It may have done so already, and others have left frames since."""
        with self._lock:
            if self.waiting:
                self._wait_for_room(True)

    def _wait_for_room(self, wanted: bool) -> None:
        # lock held: a frame that begins to wait now must not be forgotten
        if wanted is not self._watches:
            self._watch_room(wanted)
            self._watches = wanted

    def add(self, frames: Iterable[WaitingFrame]) -> None:
        """Let frames that have waited elsewhere wait here."""
        with self._lock:
            self.waiting.extend(frames)
            if self.waiting:
                self._wait_for_room(True)

    def flush(self) -> bool:
        """Write as much as there is room for of what waits; return whether something still waits.

        Raises:
            OSError: the socket is broken.
        """
        with self._lock:
            while self._rest or self.waiting:
                if not self._rest:
                    self._rest = self._next_batch()
                    continue
                try:
                    sent = self._target.send(self._rest)
                except BlockingIOError:
                    break
                self._rest = self._rest[sent:]
            waits = bool(self._rest or self.waiting)
            self._wait_for_room(waits)
            return waits

    def close(self) -> None:
        """Take no more frames; those that wait are still written."""
        with self._lock:
            self._closed = True

    def clear(self) -> None:
        """Drop what waits, and what a write that broke has left: the socket is no more."""
        with self._lock:
            self._closed = True
            self.waiting.clear()
            self._rest = memoryview(b"")
            self._wait_for_room(False)

    def _next_batch(self) -> memoryview:
        # lock held
        pieces: list[bytes] = []
        size = 0
        waiting, length_of = self.waiting, FRAME_LENGTH.pack
        while waiting and size < BATCH_BYTES:
            if (frame := waiting.popleft().take()) is not None:
                pieces += (length_of(len(frame)), frame)
                size += len(frame)
        return memoryview(b"".join(pieces))
