"""Frames that wait for their turn on a stream. Until the last byte has left, any thread may take one back."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Protocol

from .base import HEAD_BYTES, FrameHandle
from .outbox import CHUNK

LATE_SECONDS = 0.01  # a frame that waited longer gets a new header


class Waits(Protocol):
    """Something that may be taken back."""

    def withdraw(self) -> bool:
        """Let go of it; False if it has left."""
        ...


class SmallFrame:
    """Frame that leaves as one piece."""

    __slots__ = ("_data", "_handle", "_since")

    def __init__(self, data: bytes, handle: FrameHandle | None) -> None:
        self._data = [data]  # emptied by whoever is first: popping is atomic
        self._handle = handle
        self._since = time.monotonic()
        if handle is not None:
            handle.waiting = self

    def take(self) -> bytes | None:
        """Return the frame, which leaves now; ``None`` if it was withdrawn."""
        try:
            data = self._data.pop()
        except IndexError:
            return None
        handle, self._handle = self._handle, None  # else the two would be a cycle
        if handle is not None and time.monotonic() - self._since > LATE_SECONDS:
            return handle.restamp(data[:HEAD_BYTES]) + data[HEAD_BYTES:]
        return data

    def withdraw(self) -> bool:
        try:
            self._data.pop()
        except IndexError:
            return False
        self._handle = None
        return True


class Transfer:
    """Large frame, which leaves in chunks. Its receiver drops what it has when the transfer is cut short."""

    def __init__(self, number: int, size: int, handle: FrameHandle | None) -> None:
        self._lock = threading.Lock()
        self._cut: bytes | None = CHUNK.pack(number, 0)
        self._chunks: deque[bytes] = deque()
        self._total = self._left = size
        self._handle = handle
        self._since = time.monotonic()
        self._withdrawn = False
        if handle is not None:
            handle.waiting = self

    def add(self, chunk: bytes) -> bool:
        """Take the next chunk; False if there is no need for more."""
        with self._lock:
            if not self._withdrawn:
                self._chunks.append(chunk)
            return not self._withdrawn

    def take(self) -> bytes | None:
        """Return the next chunk, which leaves now; ``None`` if none does."""
        with self._lock:
            if self._withdrawn:
                cut, self._cut = self._cut if self._left < self._total else None, None
                return cut
            handle, self._handle = self._handle, None  # for the first chunk only; and the two would be a cycle
            chunk = self._chunks.popleft()
            self._left -= len(chunk) - CHUNK.size
        if handle is not None and time.monotonic() - self._since > LATE_SECONDS:
            return _restamp(handle, chunk)
        return chunk

    def withdraw(self) -> bool:
        with self._lock:
            if self._withdrawn or not self._left:
                return False
            self._withdrawn = True
            self._handle = None
            self._chunks.clear()
        return True


def _restamp(handle: FrameHandle, chunk: bytes) -> bytes:
    end = CHUNK.size + HEAD_BYTES
    return b"".join((chunk[: CHUNK.size], handle.restamp(chunk[CHUNK.size : end]), memoryview(chunk)[end:]))
