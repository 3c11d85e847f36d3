"""Frames into a stream socket: the thread that sends writes them itself; what the socket has no room for waits."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from .base import FrameHandle
from .outbox import BATCH_BYTES, LENGTH, SmallFrame

MOST_PARTS = 512  # of one write; the system takes 1024


class StreamWriter:
    """Writes frames to a non-blocking socket, in the order in which they were sent. Any thread.

    Args:
        target: the socket.
        wait_for_room: called when something begins to wait: ``flush`` must be called when the socket has room.
    """

    def __init__(self, target: socket.socket, wait_for_room: Callable[[], None]) -> None:
        self._target = target
        self._wait_for_room = wait_for_room
        # Re-entrant: a signal handler may send a frame while its thread sends one, which then waits.
        self._lock = threading.RLock()
        self._busy = False
        self._closed = False
        self._rest: memoryview = memoryview(b"")  # of what has left in part
        self._waiting: deque[SmallFrame] = deque()

    def send(self, parts: list[Any], size: int, handle: FrameHandle | None) -> bool:
        """Write one frame, or let it wait.

        Args:
            parts: the frame; their memory may change afterwards.
            size: its length in bytes.
            handle: names it, so that it can be withdrawn while it waits.

        Returns:
            False if this writer is closed.

        Raises:
            OSError: the socket is broken.
        """
        with self._lock:
            if self._closed:
                return False
            if self._busy or self._waiting or self._rest:
                self._waiting.append(SmallFrame(b"".join(parts), handle))
                return True
            self._busy = True
            data = [LENGTH.pack(size), *parts]
            if len(data) > MOST_PARTS:
                data = [b"".join(data)]
            sent = self._write(data)
            if sent < size + LENGTH.size:
                self._rest = memoryview(b"".join(data))[sent:]
            self._busy = False  # stays true if the writing was interrupted, and nobody knows how much has left
            if self._rest or self._waiting:
                self._wait_for_room()
        return True

    def add(self, frames: Iterable[SmallFrame]) -> None:
        """Let frames that have waited elsewhere wait here."""
        with self._lock:
            self._waiting.extend(frames)
            if self._waiting:
                self._wait_for_room()

    def flush(self) -> bool:
        """Write as much as there is room for of what waits; return whether something still waits.

        Raises:
            OSError: the socket is broken.
        """
        with self._lock:
            if self._busy:
                return True
            self._busy = True
            while self._rest or self._waiting:
                if not self._rest:
                    self._rest = self._next_batch()
                    continue
                sent = self._write([self._rest])
                self._rest = self._rest[sent:]
                if not sent:
                    break
            self._busy = False
            return bool(self._rest or self._waiting)

    @property
    def interrupted(self) -> bool:
        """Return whether a write was interrupted, so that nobody knows how much has left. For the thread that wrote."""
        return self._busy

    def close(self) -> None:
        """Take no more frames; those that wait are still written."""
        with self._lock:
            self._closed = True

    def clear(self) -> None:
        """Drop what waits: the socket is no more."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            self._rest = memoryview(b"")

    def _write(self, data: list[Any]) -> int:
        try:
            return self._target.sendmsg(data)
        except BlockingIOError:
            return 0

    def _next_batch(self) -> memoryview:
        # lock held
        pieces: list[bytes] = []
        size = 0
        while self._waiting and size < BATCH_BYTES:
            if (frame := self._waiting.popleft().take()) is not None:
                pieces += (LENGTH.pack(len(frame)), frame)
                size += len(frame)
        return memoryview(b"".join(pieces))
