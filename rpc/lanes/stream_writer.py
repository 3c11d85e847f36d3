"""Frames into a stream socket: the thread that sends writes them itself; what the socket has no room for waits."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..call_states import WRITTEN
from .frame import BATCH_BYTES, FRAME_LENGTH, FrameHandle, WaitingFrame

if TYPE_CHECKING:
    from .stream_socket import StreamSocket

TOGETHER = 64  # frames that wait without need are written when they are so many
SMALL_WRITE_BYTES = 8 * 1024  # to join the parts of a frame up to this takes less time than to tell the system of each
MOST_PARTS = 512  # of one write; the system takes 1024


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
        if (frame := self.leave(parts, handle)) is None:
            return False
        if at_once or len(self.waiting) >= TOGETHER:
            self.write_waiting()
        elif self._is_first(frame):
            self._flush_soon()
        return True

    def _is_first(self, frame: WaitingFrame) -> bool:
        try:
            return self.waiting[0] is frame
        except IndexError:
            return False  # all have left

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
