"""Bulk frames: large frames in chunks on a gRPC stream of their own, so that small frames never wait behind them."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ...core.errors import SerializationError
from ...core.futures import Waiter
from .frame import HEAD_BYTES, LATE_SECONDS, FrameHandle, new_memory

BULK_CHUNK_BYTES = 2 * 1024 * 1024
MOST_BULK_WAITING = 3  # chunks of a frame: so few stay in the processor's cache, and their memory is used again
BULK_LOOK_SECONDS = 0.05  # a thread that waits for room checks so often whether chunks still leave
CHUNK = struct.Struct("<QQ")  # number of the frame on its stream, its bytes
MACHINE_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class ChunkedFrame:
    """Large frame that leaves in chunks. If it is cut short, the receiver drops the chunks that it has.

    Args:
        number: number of the frame on its stream.
        size: bytes of the frame.
        handle: withdraws the frame.
        leave: called with this object when a chunk, or the cut, is to leave: once for each, so that frames take turns.
    """

    def __init__(
        self, number: int, size: int, handle: FrameHandle | None, leave: Callable[[ChunkedFrame], object]
    ) -> None:
        self._lock = threading.Lock()
        self._cut: bytes | None = CHUNK.pack(number, 0)
        self._chunks: deque[bytes] = deque()
        self._total = self._left = size
        self._handle = handle
        self._leave = leave
        self._since = time.monotonic()
        self._withdrawn = False
        self._sender = Waiter()  # woken when there is room
        if handle is not None:
            handle.taken(self)

    def add(self, chunk: bytes) -> bool:
        """Add the next chunk; return False if the frame was withdrawn and needs no more."""
        with self._lock:
            if self._withdrawn:
                return False
            self._chunks.append(chunk)
        self._leave(self)
        return True

    def wait_for_room(self, leaves: Callable[[], bool]) -> None:
        """Block the thread that adds chunks, while ``MOST_BULK_WAITING`` chunks wait.

        Args:
            leaves: returns whether chunks still leave; if not, it does not wait.
        """
        while len(self._chunks) >= MOST_BULK_WAITING and leaves():
            self._sender.sleep(BULK_LOOK_SECONDS)

    def take(self) -> bytes | None:
        """Remove and return the next chunk, to send it now; ``None`` if there is nothing to send."""
        with self._lock:
            if self._withdrawn:
                cut, self._cut = self._cut if self._left < self._total else None, None
                return cut
            handle, self._handle = self._handle, None  # only the first chunk needs it; the two are a cycle
            chunk = self._chunks.popleft()
            self._left -= len(chunk) - CHUNK.size
        self._sender.release()
        if handle is not None and time.monotonic() - self._since > LATE_SECONDS:
            return _restamp(handle, chunk)
        return chunk

    def take_back(self) -> tuple[bytes, FrameHandle | None] | None:
        """Withdraw the frame and return it with its handle, to send it in another way; ``None`` if a part of it has left."""
        with self._lock:
            frame = b"".join(memoryview(chunk)[CHUNK.size :] for chunk in self._chunks)
            if self._withdrawn or len(frame) < self._total:
                return None
            self._withdrawn = True
            self._chunks.clear()
            handle, self._handle = self._handle, None
            return frame, handle

    def withdraw(self) -> bool:
        """Send no more of it; return False if it has left."""
        with self._lock:
            if self._withdrawn or not self._left:
                return False
            self._withdrawn = True
            self._handle = None
            self._chunks.clear()
        self._sender.release()
        self._leave(self)  # if it has begun, the receiver must be told that it ends here
        return True


def _restamp(handle: FrameHandle, chunk: bytes) -> bytes:
    end = CHUNK.size + HEAD_BYTES
    return b"".join((chunk[: CHUNK.size], handle.restamp(chunk[CHUNK.size : end]), memoryview(chunk)[end:]))


def chunks(transfer: int, parts: list[Any]) -> Iterator[bytes]:
    """Yield copies of ``parts`` in messages of up to ``BULK_CHUNK_BYTES``, each with the transfer's number and size."""
    head = CHUNK.pack(transfer, sum(map(len, parts)))
    pending: list[Any] = [head]
    room = BULK_CHUNK_BYTES
    for part in parts:
        view = memoryview(part)
        while len(view):
            piece, view = view[:room], view[room:]
            pending.append(piece)
            room -= len(piece)
            if not room:
                yield b"".join(pending)
                pending, room = [head], BULK_CHUNK_BYTES
    if len(pending) > 1:
        yield b"".join(pending)


class Assembly:
    """Puts bulk frames together from their chunks. Chunks of one transfer come in order; transfers may be interleaved.

    Args:
        most_bytes: limit of the bytes of all frames under way.
        take: returns memory for a frame.

    A chunk says how long its frame is, and memory is taken accordingly. So the frames under way together must fit into this
    machine's memory, and all chunks of a frame must say the same length.
    """

    def __init__(self, most_bytes: int = MACHINE_BYTES, take: Callable[[int], memoryview] = new_memory) -> None:
        self._take = take
        self._under_way: dict[int, tuple[memoryview, int]] = {}
        self._room = most_bytes

    def add(self, message: bytes) -> memoryview | None:
        """Add one chunk, and return its frame when that is complete. The frame's memory is writable and used by nothing else.

        Raises:
            SerializationError: the chunk does not fit the chunks before it, or the frame does not fit into memory.
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
        """Drop a transfer that its sender has cut short."""
        frame, _ = self._under_way.pop(transfer, (b"", 0))
        if total or not frame:
            raise SerializationError("a chunk without content")
        self._room += len(frame)

    def _begin(self, total: int) -> memoryview:
        if total > self._room:
            raise SerializationError(f"a frame of {total} bytes, beside those under way, exceeds this machine's memory")
        self._room -= total
        return self._take(total)
