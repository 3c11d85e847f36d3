"""Pipes of a gRPC session: two bidirectional streams, one for small frames, several per message, and one for large frames."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import grpc

from ..threads.ioloop import call_on_loop, first_of, may_block
from .bulk import Assembly, ChunkedFrame, chunks
from .frame import BULK_BYTES, FrameHandle, WaitingFrame
from .large.heap import HEAP
from .outbox import Outbox, Write, next_batch, next_chunk
from .pipe import Pipe, Unsent

if TYPE_CHECKING:
    from .large.buffers import Buffers

Read = Callable[[], Awaitable[Any]]


class GrpcPipe(Pipe):
    """Small frames on a gRPC stream.

    Args:
        loop: loop of the lane.
        interrupted: called if a signal handler raises something while its thread writes: the stream will end.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, interrupted: Callable[[], object]) -> None:
        self._outbox = Outbox(loop, next_batch, interrupted)
        self._closed = False

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        frame = WaitingFrame(b"".join(parts), handle)
        self._outbox.put(frame)
        return not (self._closed and _came_late(frame, handle))

    def add(self, frames: Iterable[WaitingFrame]) -> None:
        for frame in frames:
            self._outbox.put(frame)

    def end(self) -> None:
        """End this side after the frames that wait. Any thread."""
        self._outbox.end()

    async def write_to(self, write: Write) -> None:
        """Let frames leave by a stream's ``write`` from now on, until the end. On the loop."""
        await self._outbox.write_to(write)

    def close(self) -> None:
        self._closed = True
        self._outbox.take_all()


class GrpcBulkPipe(Pipe):
    """Large frames on a gRPC stream of their own, in chunks, so that small frames never wait behind them.

    Args:
        loop: loop of the lane.
        buffers: gives memory for the frames that arrive.
        interrupted: as for ``GrpcPipe``.
    """

    least = BULK_BYTES + 1

    def __init__(self, loop: asyncio.AbstractEventLoop, buffers: Buffers, interrupted: Callable[[], object]) -> None:
        self._loop = loop
        self._buffers = buffers
        self._outbox = Outbox(loop, next_chunk, interrupted)
        self._numbers = itertools.count()
        self._begun = False  # frames may have left
        self._closed = False

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        number = next(self._numbers)
        frame = ChunkedFrame(number, size, handle, self._outbox.put)
        with suppress(RuntimeError):  # the loop is closed, and the session with it
            call_on_loop(self._loop, self._keep_memory)
        waits = len(parts) > 1 and may_block()  # a control frame, which is one part, does not wait: locks may be held
        # Chunk by chunk, so that the first is on its way while the next is copied.
        try:
            for chunk in chunks(number, parts):
                if waits:
                    frame.wait_for_room(lambda: self._outbox.leaves)
                if not frame.add(chunk):
                    break
        except MemoryError:  # there is none for a copy; the sender then counts the frame as not sent
            _came_late(frame, handle)
            raise
        return not (self._closed and _came_late(frame, handle))

    async def run(self, read: Read, write: Write, deliver: Callable[[Any], object]) -> None:
        """Move frames until the stream ends. On the loop.

        Args:
            read: returns the next message of the stream, or gRPC's ``EOF``.
            write: writes a message.
            deliver: gets each frame that arrives; its memory is writable, and nothing else uses it.
        """
        self._begun = True
        await first_of(self._outbox.write_to(write), self._read(read, deliver))

    async def _read(self, read: Read, deliver: Callable[[Any], object]) -> None:
        assembly = Assembly(take=self._buffers.take)
        while (message := await read()) is not grpc.aio.EOF:
            self._keep_memory()
            frame = assembly.add(message)
            if frame is not None:
                deliver(frame)

    def _keep_memory(self) -> None:
        HEAP.keep()
        self._buffers.trim_in_a_while(self._loop)

    def take_unsent(self) -> Unsent:
        waiting = dict.fromkeys(self._outbox.take_all())  # a frame is in the queue once for each chunk
        taken = [frame.take_back() for frame in waiting]
        return [(data, handle) for data, handle in filter(None, taken) if handle is not None]

    def close(self) -> None:
        self._closed = True
        if self._begun:  # else ``take_unsent`` takes them
            self._outbox.take_all()


def _came_late(frame: WaitingFrame | ChunkedFrame, handle: FrameHandle | None) -> bool:
    """Take back a frame that its pipe does not send any more; return False if it has left, or was taken or withdrawn."""
    late = frame.withdraw()
    if late and handle is not None:
        handle.given_back()
    return late
