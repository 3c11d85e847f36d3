"""Queue of frames that wait for a stream: filled from any thread without blocking, emptied in batches by one coroutine.

Until a frame has left, any thread may take it back. Frames of more than ``BULK_BYTES`` are in ``bulk.py``.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Iterator
from time import monotonic
from typing import Any, Protocol

from ...core.errors import SerializationError
from .base import HEAD_BYTES, FrameHandle

BATCH_BYTES = 512 * 1024  # a write of many small frames stays well under gRPC's message limit
LENGTH = struct.Struct("<I")
LATE_SECONDS = 0.01  # a frame that waited longer gets a new header


class Waits(Protocol):
    """Something that may be taken back."""

    def withdraw(self) -> bool:
        """Let go of it; False if it has left."""
        ...

    def take_back(self) -> tuple[bytes, FrameHandle | None] | None:
        """Return the frame and its handle, to send it another way; ``None`` if some of it has left or it was withdrawn."""
        ...


class SmallFrame:
    """Frame that leaves as one piece."""

    __slots__ = ("_data", "_handle", "_since")

    def __init__(self, data: bytes, handle: FrameHandle | None) -> None:
        self._data = data  # deleted by the thread that is first, which takes the frame
        self._handle = handle
        if handle is not None:
            self._since = monotonic()
            handle.taken(self)

    def take(self) -> bytes | None:
        """Return the frame, which leaves now; ``None`` if it was withdrawn."""
        try:
            data = self._data
            del self._data
        except AttributeError:
            return None
        if (handle := self._handle) is not None:
            self._handle = None  # else the two would be a cycle
            if monotonic() - self._since > LATE_SECONDS:
                return handle.restamp(data[:HEAD_BYTES]) + data[HEAD_BYTES:]
        return data

    def take_back(self) -> tuple[bytes, FrameHandle | None] | None:
        """Return the frame and its handle, to send it another way; ``None`` if it has left or was withdrawn."""
        try:
            data = self._data
            del self._data
        except AttributeError:
            return None
        handle, self._handle = self._handle, None
        return data, handle

    def withdraw(self) -> bool:
        try:
            del self._data
        except AttributeError:
            return False
        self._handle = None
        return True


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
            except BaseException:  # Ctrl-C, say: nobody else would wake it
                self._loop.call_soon_threadsafe(self._wake)
                raise

    async def get(self) -> Any:
        """Return the next item, as soon as there is one."""
        while not self._items:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._items.popleft()

    def take_all(self) -> list[Any]:
        """Return all items, and keep none."""
        items = list(self._items)
        self._items.clear()
        return items

    def clear(self) -> None:
        """Drop all items: the stream is no more."""
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
