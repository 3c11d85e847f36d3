"""Frames in a lane: their sizes, the handle that the sender keeps, and the records of a frame that waits."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from time import monotonic
from typing import Any

import numpy as np

from ..call_states import ADMITTED, NEW, WRITTEN

FRAME_LENGTH = struct.Struct("<I")  # length of a small frame, which stands before it
HEAD_BYTES = 24  # header of a frame with a handle
BULK_BYTES = 128 * 1024  # the largest small frame; larger ones are bulk
BATCH_BYTES = 512 * 1024  # of small frames that leave together: well under gRPC's limit of a message
SCATTERED = 0x80  # bit of a frame's first byte that only lanes set: it is clear in all frames that a lane is given
LATE_SECONDS = 0.01  # a frame that waited longer gets a new header


class FrameHandle(ABC):
    """Handle of a frame that was given to ``Session.send``: with it the frame can be withdrawn.

    Attributes:
        state: where the frame is. The lane sets ``WRITTEN`` when it has it, and ``ADMITTED`` if it gives it back.
        waiting: the record of the place where it waits: of the sender's queue, then of the lane.
    """

    __slots__ = ("state", "waiting")

    def __init__(self) -> None:
        self.state = NEW
        self.waiting: Any = None

    def taken(self, waiting: Any) -> None:
        """Note that a lane has the frame from here on; the frame can be withdrawn by the lane's record."""
        loan = self.waiting
        if type(loan) is Loan:
            loan.waiting, waiting = waiting, loan
        self.waiting, self.state = waiting, WRITTEN

    def given_back(self) -> None:
        """Note that the lane does not send the frame."""
        self.waiting, self.state = None, ADMITTED

    def withdraw(self) -> bool:
        """Drop the frame, if it still waits: the peer will not receive it. Return False if it has left. Any thread."""
        waiting = self.waiting
        return waiting is not None and bool(waiting.withdraw())

    @abstractmethod
    def restamp(self, head: bytes) -> bytes:
        """Return the frame's header with the time that is left now. Called when a frame leaves after a wait.

        Args:
            head: the frame's first ``HEAD_BYTES`` bytes, as they were when it was given to the lane.
        """


class Loan:
    """Record of a frame some of which is in segments: its withdrawal gives them back. Made without a call of Python code.

    Attributes:
        undo: called after the frame was withdrawn; the lane then sends the notices of the frame in another way.
        waiting: the lane's record of the frame, while it waits to leave.
    """

    undo: Any
    waiting: Any = None

    def withdraw(self) -> bool:
        """Drop the frame, if it still waits; return False if it has left."""
        if self.waiting is None or not self.waiting.withdraw():
            return False
        self.undo()
        return True


class WaitingFrame:
    """Record of a frame that waits, with a copy of its bytes, and leaves as one piece. The first thread that takes it has it.

    Args:
        data: the frame.
        handle: withdraws it.
    """

    __slots__ = ("_data", "_handle", "_since")

    def __init__(self, data: bytes, handle: FrameHandle | None) -> None:
        self._data = data  # deleted by the thread that takes the frame
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
        """Drop the frame; return False if it has left."""
        try:
            del self._data
        except AttributeError:
            return False
        self._handle = None
        return True


def new_memory(size: int) -> memoryview:
    """Return writable memory of ``size`` bytes for a frame. Its content is not set."""
    # Not a bytearray, which would be zeroed first.
    array: Any = np.empty(size, np.uint8)
    return memoryview(array)
