"""Queue of what waits for a stream: filled from any thread without blocking, emptied in batches by one coroutine."""

from __future__ import annotations

import asyncio
import os
import struct
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.errors import SerializationError

BATCH_BYTES = 512 * 1024  # a write of many small frames stays well under gRPC's message limit
BULK_BYTES = 128 * 1024  # larger frames travel in chunks on a stream of their own
CHUNK_BYTES = 2 * 1024 * 1024
LENGTH = struct.Struct("<I")
MACHINE_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
CHUNK = struct.Struct("<QQ")  # number of the transfer, bytes of its frame


class Outbox:
    """Queue of items from many threads to one coroutine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: deque[Any] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._wake_pending = False

    def put(self, item: Any) -> None:
        """Add an item; wakes the coroutine unless a wake-up is on its way."""
        self._items.append(item)
        if not self._wake_pending:
            self._wake_pending = True
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                pass  # the loop is closed, and the connection with it

    async def get(self) -> Any:
        """Return the next item, as soon as there is one."""
        while not self._items:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._items.popleft()

    def clear(self) -> None:
        """Let go of everything: the stream is no more."""
        self._items.clear()

    def __len__(self) -> int:
        return len(self._items)

    def _wake(self) -> None:
        self._wake_pending = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def next_batch(outbox: Outbox) -> tuple[bytes, bool]:
    """Return every small frame that waits now, up to a limit, as one stream message; and whether the outbox was closed."""
    pieces: list[bytes] = []
    size = 0
    waiting = await outbox.get()
    while waiting is not None:
        if (frame := waiting.take()) is not None:
            pieces += (LENGTH.pack(len(frame)), frame)
            size += len(frame)
        if size > BATCH_BYTES or not len(outbox):
            break
        waiting = await outbox.get()
    return b"".join(pieces), waiting is None


def split_batch(batch: bytes) -> Iterator[bytes]:
    """Yield the frames of one stream message.

    Raises:
        SerializationError: it is none.
    """
    position = 0
    while position < len(batch):
        start = position + LENGTH.size
        position = start + (LENGTH.unpack_from(batch, position)[0] if start <= len(batch) else len(batch))
        if position > len(batch):
            raise SerializationError("a batch of frames ends in the middle of one")
        yield batch[start:position]


def chunks(transfer: int, parts: list[Any]) -> Iterator[bytes]:
    """Yield ``parts``, copied, in stream messages of up to ``CHUNK_BYTES``, each with the transfer's number and size."""
    head = CHUNK.pack(transfer, sum(map(len, parts)))
    pending: list[Any] = [head]
    room = CHUNK_BYTES
    for part in parts:
        view = memoryview(part)
        while len(view):
            piece, view = view[:room], view[room:]
            pending.append(piece)
            room -= len(piece)
            if not room:
                yield b"".join(pending)
                pending, room = [head], CHUNK_BYTES
    if len(pending) > 1:
        yield b"".join(pending)


def _memory(size: int) -> memoryview:
    # Not zeroed, as a bytearray would be: it is about to be written.
    array: Any = np.empty(size, np.uint8)
    return memoryview(array)


class Assembly:
    """Puts bulk frames together from their chunks. Those of one transfer come in order; transfers may be interleaved.

    A chunk says how long its frame is, and memory is taken on that word: so all that are under way may not be longer than
    this machine's memory, and a frame's chunks must agree.
    """

    def __init__(self, most_bytes: int = MACHINE_BYTES) -> None:
        self._under_way: dict[int, tuple[memoryview, int]] = {}
        self._room = most_bytes

    def add(self, message: bytes) -> memoryview | None:
        """Take one chunk; returns a frame when it is complete. Its memory is writable and the receiver's.

        Raises:
            SerializationError: it does not fit what came before, or this machine.
        """
        if len(message) < CHUNK.size:
            raise SerializationError("a chunk without a header")
        transfer, total = CHUNK.unpack_from(message)
        if len(message) == CHUNK.size:
            self._cut(transfer, total)
            return None
        frame, position = self._under_way.get(transfer) or (self._begin(total), 0)
        end = position + len(message) - CHUNK.size
        if total != len(frame) or end > total:
            raise SerializationError(f"a chunk of a frame of {len(frame)} bytes ends at {end}, and says it has {total}")
        frame[position:end] = memoryview(message)[CHUNK.size :]
        if end < total:
            self._under_way[transfer] = (frame, end)
            return None
        self._under_way.pop(transfer, None)
        self._room += total
        return frame

    def _cut(self, transfer: int, total: int) -> None:
        """Drop a transfer of which the sender took the rest back."""
        frame, _ = self._under_way.pop(transfer, (b"", 0))
        if total or not frame:
            raise SerializationError("a chunk without content")
        self._room += len(frame)

    def _begin(self, total: int) -> memoryview:
        if total > self._room:
            raise SerializationError(f"a frame of {total} bytes, beside those under way, exceeds this machine's memory")
        self._room -= total
        return _memory(total)
