"""``GrpcBulkPipe``: large frames on a gRPC stream of their own, so that small frames never wait behind them.

They travel as on a bulk socket: ``large/writer.py`` writes transfers in units, which ``large/incoming.py`` puts together. A
message of the stream is one unit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import grpc

from ...core.futures import Waiter
from ..threads.ioloop import call_if_open, first_of, may_block
from .frame import BULK_BYTES, FrameHandle
from .large.chunk_size import ChunkSize
from .large.heap import HEAP
from .large.incoming import TransferAssembly
from .large.transfer import Transfer
from .large.writer import BulkWriter, UnitMemoryError
from .outbox import Outbox, Write
from .pipe import Pipe, Unsent

if TYPE_CHECKING:
    from .large.buffers import Buffers

GRPC_CHUNK_BYTES = 2 * 1024 * 1024
MOST_CHUNKS_WAITING = 3  # messages: so few stay in the processor's cache, and their memory is used again
Read = Callable[[], Awaitable[Any]]


class UnitStream:
    """gRPC stream as a target of units (``BulkTarget``). It has room for few messages, and for none until it is open.

    Args:
        loop: loop of the lane.
        interrupted: as for ``Outbox``.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, interrupted: Callable[[], object]) -> None:
        self._loop = loop
        self.full = True
        self.outbox = Outbox(loop, self._take, interrupted)
        self._messages = self.outbox.items
        self._room = Waiter()
        self.wait_for_room = self._room.sleep
        self._when_room: Callable[[], object] | None = None

    def sendmsg(self, parts: Sequence[Any], _: Sequence[Any] = (), flags: int = 0, /) -> int:
        if self.full:
            self._look_for_room()
        try:
            message = b"".join(parts)
        except MemoryError as error:
            raise UnitMemoryError(*error.args) from None
        self.outbox.put(message)
        self.full = True
        if len(self._messages) < MOST_CHUNKS_WAITING:  # asked after that: ``_take`` tells of room if it was full
            self.full = False
        return len(message)

    def _look_for_room(self) -> None:
        # ``full`` stays set while this looks: a message that leaves meanwhile tells of room.
        if self.outbox.write is None or len(self._messages) >= MOST_CHUNKS_WAITING:
            raise BlockingIOError
        self.full = False

    def call_when_room(self, _: asyncio.AbstractEventLoop, action: Callable[[], object]) -> None:
        self._when_room = action
        if not self.full:  # a message has left meanwhile
            self._tell_room()

    def forget_room(self, _: asyncio.AbstractEventLoop) -> None:
        self._when_room = None

    async def write_to(self, write: Write) -> None:
        """Let units leave by a stream's ``write`` from now on, until the end. On the loop."""
        self._loop.call_soon(self._tell_room)  # the stream is open then
        await self.outbox.write_to(write)

    def _take(self, messages: deque[bytes]) -> bytes:
        message = messages.popleft()
        if self.full or self._when_room is not None:
            self._tell_room()
        return message

    def _tell_room(self) -> None:
        self.full = False
        self._room.release()
        if (action := self._when_room) is not None:
            call_if_open(self._loop, action)


class GrpcBulkPipe(Pipe):
    """Large frames on a gRPC stream of their own.

    Args:
        loop: loop of the lane.
        buffers: gives memory for the frames that arrive.
        interrupted: called if a signal handler raises something while its thread writes: the stream will end.
    """

    least = BULK_BYTES + 1

    def __init__(self, loop: asyncio.AbstractEventLoop, buffers: Buffers, interrupted: Callable[[], object]) -> None:
        self._loop = loop
        self._buffers = buffers
        self._interrupted = interrupted
        self._stream = UnitStream(loop, interrupted)
        self._writer = BulkWriter(self._stream, loop, self._broke)
        self._begun = False  # frames may have left
        self._unsent: Unsent = []

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        call_if_open(self._loop, self._keep_memory)
        transfer = Transfer(parts, (), handle, ChunkSize(GRPC_CHUNK_BYTES, GRPC_CHUNK_BYTES))
        # A control frame, which is one part, does not wait: locks may be held.
        waits = len(parts) > 1 and self._stream.outbox.write is not None and may_block()
        sent = False
        try:
            sent = self._writer.send(transfer, waits)
        except MemoryError:  # the sender counts the frame as not sent
            if transfer.take_back() and handle is not None:
                handle.given_back()
            raise
        if not sent and handle is not None:
            handle.given_back()
        return sent

    async def run(self, read: Read, write: Write, deliver: Callable[[Any], object]) -> None:
        """Move frames until the stream ends. On the loop.

        Args:
            read: returns the next message of the stream, or gRPC's ``EOF``.
            write: writes a message.
            deliver: gets each frame that arrives; its memory is writable, and nothing else uses it.
        """
        self._begun = True
        await first_of(self._stream.write_to(write), self._read(read, deliver))

    async def _read(self, read: Read, deliver: Callable[[Any], object]) -> None:
        assembly = TransferAssembly(self._buffers.take, deliver)
        while (message := await read()) is not grpc.aio.EOF:
            self._keep_memory()
            assembly.message(message)

    def _keep_memory(self) -> None:
        HEAP.keep()
        self._buffers.trim_in_a_while(self._loop)

    def _broke(self, _: Exception) -> None:
        """End the stream: it is unknown how much of a transfer has left."""
        self._interrupted()
        self._stream.outbox.break_off()

    def take_unsent(self) -> Unsent:
        self._stop_writing()  # the session may have been found closed, and not have ended yet
        unsent, self._unsent = self._unsent, []
        return unsent

    def close(self) -> None:
        self._stop_writing()
        self._stream.outbox.take_all()

    def _stop_writing(self) -> None:
        taken = self._writer.take_unsent()
        if not self._begun:
            self._unsent += [(data, handle) for data, handle in filter(None, taken) if handle is not None]
