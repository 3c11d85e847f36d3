"""Sessions of the gRPC lane: two gRPC streams, and sockets for small and for large frames if both ends can have them.

Whether a socket or gRPC carries the small frames is decided before the first one leaves, so that they keep their order. The
dialer decides. It opens the socket, or sends an empty message on the stream, which means that there is no socket. Then it
opens the socket for large frames. Until that is open, large frames go by gRPC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import grpc

from ...base.errors import SerializationError
from ..threads.ioloop import first_of
from .grpc_bulk import GrpcBulkPipe, Read
from .grpc_handshake import WELCOME_KEY, translate
from .grpc_pipe import GrpcPipe
from .large.pipe import LargePipe
from .outbox import Write, split_batch
from .session import Session
from .stream_pipe import StreamPipe

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from .dialing import DialingPlaces
    from .lane import LaneListener
    from .large.resources import Resources
    from .pipe import Pipe
    from .poller import Poller
    from .stream_socket import StreamSocket

FRAMES = "/telegrad.Lane/Frames"
BULK = "/telegrad.Lane/Bulk"
TOKEN = "telegrad-session"
SMALL, LARGE = "small frames", "large frames"  # purposes of the sockets of a session
SESSION_CLOSE_SECONDS = 2.0
NO_SOCKET = b""  # the dialer's first message, if there is no socket
Finish = Callable[[], Awaitable[Any]]


class SessionLane(Protocol):
    """Lane of gRPC sessions, as they see it.

    Attributes:
        poller: watches the sockets.
        resources: for large frames.
        dialing: places for the sessions that dial.
        sockets: kinds of sockets that may carry frames, the preferred first.
    """

    poller: Poller
    resources: Resources
    dialing: DialingPlaces
    sockets: Sequence[str]

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop on which the sessions run."""

    def keep(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a part of a session's work until it or the lane ends. On the loop."""

    def target(self, peer: WorkerRecord, address: str) -> str:
        """Return the "host:port" to connect to for an address of ``peer``."""


class GrpcSession(Session):
    """Base of both ends: the pipes of the two streams and of the sockets, and the coroutines that move frames by gRPC.

    Args:
        lane: makes it.
        listener: is told of the session's events.
    """

    scheme = "grpc"
    large: Pipe

    def __init__(self, lane: SessionLane, listener: LaneListener) -> None:
        super().__init__()
        self.listener = listener
        self._lane = lane
        self._loop = loop = lane.loop
        self._decided = asyncio.Event()  # set when it is decided which pipe carries small frames, or at the end
        self._frames = GrpcPipe(loop, self._send_no_more)
        self.large = self._bulk = GrpcBulkPipe(loop, lane.resources.buffers, self._send_no_more)
        self._stream: StreamPipe | None = None
        self._scattered: LargePipe | None = None

    # -- any thread

    def close(self, last: list[Any] | None = None) -> None:
        if last is not None:
            self.send(last)
        self.closed = True
        self._frames.end()

    def _send_no_more(self) -> None:
        """Refuse frames from now on: this session ends as soon as the loop handles it."""
        self.closed = True

    # -- the loop's thread

    def use_socket(self, connected: StreamSocket, kind: str) -> None:
        """Let small frames go by a socket from here on."""
        if self._decided.is_set():  # the session has ended, or its dialer has said that there is no socket
            connected.close()
            return
        received, progress = partial(self.listener.received, self), partial(self.listener.progress, self)
        try:
            stream = StreamPipe(connected, self._lane.poller, received, self.listener.under_way, progress)
        except Exception:
            connected.close()  # the lane may have closed
            raise
        self._stream = stream
        self.use(stream, kind)
        self._decided.set()

    def use_no_socket(self, reason: str) -> None:
        """Let all frames go by gRPC; ``reason`` is a text for users."""
        self.lane_note = reason
        self.use(self._frames, self.scheme)
        self._decided.set()

    def use_bulk_socket(self, connected: StreamSocket, kind: str) -> None:
        """Let large frames go by a socket of their own from here on."""
        stream = self._stream
        if self.closed or stream is None or self._scattered is not None:
            connected.close()
            return
        deliver = partial(self._received, owned=True)
        allow_for, find = stream.reading.policy.allow_for, partial(self.listener.landing, self)
        self.large = self._scattered = LargePipe(connected, stream.send, deliver, self._lane.resources, allow_for, find)
        self._scattered.over.add_done_callback(partial(_break, stream))
        stream.scattered = partial(self._received_notice, self._scattered)

    def _received_notice(self, scattered: LargePipe, frame: Any) -> None:
        try:
            scattered.received(memoryview(frame))
        except SerializationError:
            if not self.closed:
                raise  # after the end it is no error: the segments were unmapped while a thread was reading

    def _received(self, frame: Any, owned: bool = False) -> None:
        self.listener.received(self, frame, owned)

    def _ended(self) -> None:
        self.closed = True
        self._decided.set()
        for pipe in (self._waiting, self._bulk, self._frames, self._scattered, self._stream):
            if pipe is not None:
                pipe.close()

    async def _pump_frames(self, read: Read, write: Write, done_writing: Finish | None = None) -> None:
        await first_of(self._write_frames(write, done_writing), self._read_frames(read), self._watch_pipe())

    async def _pump_bulk(self, read: Read, write: Write) -> None:
        await self._bulk.run(read, write, partial(self._received, owned=True))

    async def _write_frames(self, write: Write, done_writing: Finish | None) -> None:
        await self._decided.wait()
        await self._frames.write_to(write)  # if a socket carries the frames, this only waits for the end
        for pipe in (self.large, self.small):
            # ``wait_for`` of Python before 3.12 is deaf to a cancellation that comes as the pipe finishes.
            await first_of(pipe.finish(), asyncio.sleep(SESSION_CLOSE_SECONDS))
        if done_writing is not None:
            await done_writing()
            await asyncio.sleep(SESSION_CLOSE_SECONDS)  # the acceptor then ends the stream, which ends ``_read_frames``

    async def _read_frames(self, read: Read) -> None:
        while (batch := await read()) is not grpc.aio.EOF:
            if not self._decided.is_set():
                self.use_no_socket("its dialer opened no socket")
            for frame in split_batch(batch):
                self._received(frame)
        ends = [pipe.over for pipe in (self.small, self.large) if pipe.over is not None]
        if ends:  # frames that were sent before the end are still to be read
            await asyncio.wait(ends, timeout=SESSION_CLOSE_SECONDS)

    async def _watch_pipe(self) -> None:
        """End the session when the pipe of its small frames breaks, or has ended for a while."""
        await self._decided.wait()
        if self.small.over is None:
            await asyncio.Event().wait()
            return
        if (error := await self.small.over) is None:
            await asyncio.sleep(SESSION_CLOSE_SECONDS)
        raise ConnectionResetError(f"its socket broke: {error or 'the peer closed it'}")


def _break(stream: StreamPipe, over: asyncio.Future[Exception | None]) -> None:
    """Break a stream whose bulk socket broke."""
    if (error := over.result()) is not None:
        stream.end(error)


class AcceptedSession(GrpcSession):
    """Session at the end that listened.

    Args:
        lane, listener: as for ``GrpcSession``.
    """

    def __init__(self, lane: SessionLane, listener: LaneListener) -> None:
        super().__init__(lane, listener)
        self.over = self._loop.create_future()

    async def run(self, context: Any, welcome: bytes) -> None:
        """Send the welcome, move frames until the session ends, and tell the listener."""
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
        """Move bulk data until the session ends."""
        await first_of(self._pump_bulk(context.read, context.write), _wait(self.over))


async def _wait(future: asyncio.Future[None]) -> None:
    await asyncio.wait([future])
