"""Connections of the gRPC lane: two gRPC streams, and sockets for small and for large frames if both ends can have them.

Whether a socket or gRPC carries the small frames is decided before the first one leaves, so that they keep their order. The
dialer decides. It opens the socket, or sends an empty message on the stream, which means that there is no socket. Then it
opens the socket for large frames. Until that is open, large frames go by gRPC.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import grpc

from ...core.errors import SerializationError
from ..call_states import ADMITTED
from ..threads.ioloop import call_on_loop, first_of, may_block
from .base import SCATTERED, Connection, FrameHandle, LaneListener
from .bulk import BULK_BYTES, Assembly, Transfer, chunks
from .grpc_handshake import WELCOME_KEY, translate
from .large.channel import SEGMENT_BYTES, LargeFrames
from .large.heap import HEAP
from .large.resources import Resources
from .outbox import Outbox, SmallFrame, Waits, Write, next_batch, next_chunk, split_batch
from .poller import Poller
from .stream import Stream
from .tls_socket import TlsSocket

CLOSE_SECONDS = 2.0
NO_SOCKET = b""  # the dialer's first message, if there is no socket
Read = Callable[[], Awaitable[Any]]
Finish = Callable[[], Awaitable[Any]]


class GrpcConnection(Connection):
    """Base of both ends: two outboxes, which write to two streams, the coroutines that read these streams, and the sockets.

    Args:
        loop: loop of the lane.
        listener: is told of the connection's events.
        poller: watches the socket.
        resources: the lane's resources for large frames.
    """

    scheme = "grpc"

    def __init__(
        self, loop: asyncio.AbstractEventLoop, listener: LaneListener, poller: Poller, resources: Resources
    ) -> None:
        self.listener = listener
        self.closed = False
        self._loop = loop
        self._poller = poller
        self._resources = resources
        self._stream: Stream | None = None
        self._decided = asyncio.Event()  # set when it is decided whether there is a socket
        # Held while a frame is queued before that, and while the socket takes over.
        self._undecided = threading.Lock()
        self._frames = Outbox(loop, next_batch, self._send_no_more)
        self._bulk = Outbox(loop, next_chunk, self._send_no_more)
        self._transfers = itertools.count()
        self._large: LargeFrames | None = None

    # -- any thread

    def send(self, parts: list[Any], handle: FrameHandle | None = None) -> bool:
        if self.closed:
            return False
        size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        if size < SEGMENT_BYTES and self._stream is not None:
            return self._stream.send(parts, size, handle)
        if size >= SEGMENT_BYTES and self._large is not None and self._stream is not None:
            self._stream.reading.policy.allow_for(size)
            return self._large.send(parts, size, handle)
        if size > BULK_BYTES:
            return self._send_bulk(parts, size, handle)
        if self._stream is not None:
            return self._stream.send(parts, size, handle)
        return self._send_small(parts, size, handle)

    def _send_small(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        with self._undecided:
            if self._stream is None:
                frame = SmallFrame(b"".join(parts), handle)
                self._frames.put(frame)
                return not self._came_late(frame, handle)
        return self._stream.send(parts, size, handle)

    def _came_late(self, frame: Waits, handle: FrameHandle | None) -> bool:
        """Take back a frame that was queued after the end of this connection, unless ``take_unsent`` has taken it."""
        late = self.closed and not self.opened and frame.withdraw()
        if late and handle is not None:
            handle.waiting, handle.state = None, ADMITTED
        return late

    def _send_bulk(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        number = next(self._transfers)
        transfer = Transfer(number, size, handle)
        with suppress(RuntimeError):  # the loop is closed, and the connection with it
            call_on_loop(self._loop, self._keep_memory)
        waits = len(parts) > 1 and may_block()  # a control frame, which is one part, does not wait: locks may be held
        # Chunk by chunk, so that the first is on its way while the next is copied.
        try:
            for chunk in chunks(number, parts):
                if waits:
                    transfer.wait_for_room(lambda: self._bulk.leaves)
                if not transfer.add(chunk):
                    break
                self._bulk.put(transfer)  # once for each chunk, so that transfers take turns
        except MemoryError:  # there is none for a copy
            self._cut_short(transfer, handle)
            raise
        return not self._came_late(transfer, handle)

    def _cut_short(self, transfer: Transfer, handle: FrameHandle | None) -> None:
        """End a transfer that cannot be completed; its sender then counts the frame as not sent."""
        if transfer.withdraw():
            self._bulk.put(transfer)  # if it has begun, the receiver must be told that it ends here
            if handle is not None:
                handle.waiting, handle.state = None, ADMITTED

    def withdraw(self, handle: FrameHandle) -> bool:
        if not handle.withdraw():
            return False
        if isinstance(handle.waiting, Transfer):
            self._bulk.put(handle.waiting)  # once more: if it has begun, the receiver must be told that it ends here
        return True

    def take_unsent(self) -> list[tuple[Any, FrameHandle]]:
        # A transfer is in the queue once for each chunk.
        waiting = dict.fromkeys(self._frames.take_all() + self._bulk.take_all())
        taken = [each.take_back() for each in waiting if each is not None]
        return [(frame, handle) for frame, handle in filter(None, taken) if handle is not None]

    def close(self, last: list[Any] | None = None) -> None:
        if last is not None:
            self.send(last)
        self.closed = True
        self._frames.put(None)  # the stream of small frames ends after the last frame

    def _send_no_more(self) -> None:
        """Refuse frames from now on: this connection ends as soon as the loop handles it."""
        self.closed = True

    # -- the loop's thread

    def use_socket(self, connected: socket.socket | TlsSocket, kind: str) -> None:
        """Let small frames go by a socket from here on, beginning with those that wait."""
        if self._decided.is_set():  # the connection has ended, or its dialer has said that there is no socket
            connected.close()
            return
        progress = partial(self.listener.progress, self)
        try:
            stream = Stream(connected, self._poller, self._received_small, self.listener.crowded, progress)
        except Exception:
            connected.close()  # the lane may have closed
            raise
        with self._undecided:
            frames = self._frames.take_all()
            stream.add(frame for frame in frames if frame is not None)
            self._stream, self.scheme, self.lane_note = stream, kind, ""
            self.reading = stream.reading
            if None in frames:  # the connection was closed
                self._frames.put(None)
        self._decided.set()

    def use_no_socket(self, reason: str) -> None:
        """Let all frames go by gRPC; ``reason`` is a text for users."""
        self.lane_note = reason
        self._decided.set()

    def use_bulk_socket(self, connected: socket.socket | TlsSocket, kind: str) -> None:
        """Let large frames go by a socket of their own from here on."""
        if self.closed or self._stream is None or self._large is not None:
            connected.close()
            return
        stream = self._stream
        deliver = partial(self._received, owned=True)
        self._large = LargeFrames(connected, stream.send, deliver, self._resources)
        self._large.over.add_done_callback(partial(_break, stream))

    def _received_small(self, frame: Any) -> None:
        if frame and frame[0] & SCATTERED and self._large is not None:
            try:
                self._large.received(memoryview(frame))
            except SerializationError:
                if not self.closed:
                    raise  # after the end it is no error: the segments were unmapped while a thread was reading
        else:
            self.listener.received(self, frame, True)

    def _received(self, frame: Any, owned: bool = False) -> None:
        self.listener.received(self, frame, owned)

    def _ended(self) -> None:
        self.closed = True
        self._decided.set()
        if self.opened:
            self._bulk.clear()
            self._frames.clear()
        if self._large is not None:
            self._large.close()
        if self._stream is not None:
            self._stream.close()

    async def _pump_frames(self, read: Read, write: Write, done_writing: Finish | None = None) -> None:
        await first_of(self._write_frames(write, done_writing), self._read_frames(read), self._watch_socket())

    async def _pump_bulk(self, read: Read, write: Write) -> None:
        await first_of(self._bulk.write_to(write), self._read_bulk(read))

    async def _write_frames(self, write: Write, done_writing: Finish | None) -> None:
        await self._decided.wait()
        await self._frames.write_to(write)
        for side in (self._large, self._stream):
            if side is not None:
                # ``wait_for`` of Python before 3.12 is deaf to a cancellation that comes as the side finishes.
                await first_of(side.finish(), asyncio.sleep(CLOSE_SECONDS))
        if done_writing is not None:
            await done_writing()
            await asyncio.sleep(CLOSE_SECONDS)  # the acceptor then ends the stream, which ends ``_read_frames``

    async def _read_frames(self, read: Read) -> None:
        while (batch := await read()) is not grpc.aio.EOF:
            if not self._decided.is_set():
                self.use_no_socket("its dialer opened no socket")
            for frame in split_batch(batch):
                self._received(frame)
        ends = [each.over for each in (self._stream, self._large) if each is not None]
        if ends:  # frames that were sent before the end are still to be read
            await asyncio.wait(ends, timeout=CLOSE_SECONDS)

    async def _watch_socket(self) -> None:
        """End the connection when its socket breaks, or has ended for a while."""
        await self._decided.wait()
        if self._stream is None:
            await asyncio.Event().wait()
            return
        if (error := await self._stream.over) is None:
            await asyncio.sleep(CLOSE_SECONDS)
        raise ConnectionResetError(f"its socket broke: {error or 'the peer closed it'}")

    async def _read_bulk(self, read: Read) -> None:
        assembly = Assembly(take=self._resources.buffers.take)
        while (message := await read()) is not grpc.aio.EOF:
            self._keep_memory()
            frame = assembly.add(message)
            if frame is not None:
                self._received(frame, owned=True)

    def _keep_memory(self) -> None:
        HEAP.keep()
        self._resources.buffers.trim_in_a_while(self._loop)


def _break(stream: Stream, over: asyncio.Future[Exception | None]) -> None:
    """Break a stream whose bulk socket broke."""
    if (error := over.result()) is not None:
        stream.fail(error)


class AcceptedConnection(GrpcConnection):
    """Connection at the end that listened.

    Args:
        loop, listener, poller, resources: as for ``GrpcConnection``.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, listener: LaneListener, poller: Poller, resources: Resources
    ) -> None:
        super().__init__(loop, listener, poller, resources)
        self.over = loop.create_future()

    async def run(self, context: Any, welcome: bytes) -> None:
        """Send the welcome, move frames until the connection ends, and tell the listener."""
        error: Exception = ConnectionResetError("the peer closed the connection")
        self.opened = True
        try:
            await context.send_initial_metadata(((WELCOME_KEY, welcome),))
            await self._pump_frames(context.read, context.write)
        except Exception as problem:
            error = translate(problem, "its dialer")
        finally:
            self._ended()
            if not self.over.done():
                self.over.set_result(None)
            self.listener.disconnected(self, error)

    async def run_bulk(self, context: Any) -> None:
        """Move bulk data until the connection ends."""
        await first_of(self._pump_bulk(context.read, context.write), _wait(self.over))


async def _wait(future: asyncio.Future[None]) -> None:
    await asyncio.wait([future])
