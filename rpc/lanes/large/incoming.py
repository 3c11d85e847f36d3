"""``TransferAssembly``: puts transfers together from their units, which come through a bulk socket or a gRPC stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ....base.errors import SerializationError
from ..frame import SCATTERED
from .transfer import UNIT_HEAD, Kind

if TYPE_CHECKING:
    from .arrival import Arrival
    from .landing import Landing

MACHINE_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class TransferAssembly:
    """Assembly of one transfer after the other, in the memory in which its frame is delivered.

    Args:
        take: returns memory for a front.
        deliver: gets each frame. Its memory is writable, and nothing else uses it.
        begin: gets the front of a scattered frame, and makes its arrival; ``None`` if no frame is scattered.
        most: most bytes of a front.

    Attributes:
        under_way: a transfer has begun and is not complete.
        landing: where the piece lands that comes now, if its receiver has said so.
    """

    def __init__(
        self,
        take: Callable[[int], memoryview],
        deliver: Callable[[Any], object],
        begin: Callable[[memoryview], Arrival] | None = None,
        most: int = MACHINE_BYTES,
    ) -> None:
        self._take = take
        self._deliver = deliver
        self._begin = begin
        self._most = most
        self.drop()

    def drop(self) -> None:
        """Drop the transfer that is under way, if any, and its memory."""
        self.under_way = False
        self._left = 0  # bytes of the chunk that are still to come
        self._memory = memoryview(b"")  # of the front, or of a piece
        self._filled = 0  # bytes in it
        self._arrival: Arrival | None = None  # after the front
        self._blanks: Iterator[memoryview] = iter(())
        self.landing: Landing | None = None

    def unit(self, kind: int, size: int) -> memoryview | None:
        """Take the header of a unit, and return memory for the bytes that follow it; ``None`` if none do.

        Raises:
            SerializationError: the unit does not fit those before it, or the frame does not fit into memory.
        """
        if kind == Kind.CHUNK and self.under_way and size:
            self._left = size
            return self._memory[self._filled : self._filled + size]
        if kind == Kind.CUT and self.under_way:
            self.drop()
        elif kind == Kind.BEGIN and not self.under_way and size:
            if size > self._most:
                raise SerializationError(f"a frame of {size} bytes exceeds this machine's memory")
            self._memory = self._take(size)
            self.under_way = True
        else:
            state = "in the middle of a transfer" if self.under_way else "between two transfers"
            raise SerializationError(f"a unit of kind {kind} with {size} bytes came {state}")
        return None

    def filled(self, count: int) -> memoryview | None:
        """Note that ``count`` bytes were put into the memory; return memory for the next ones, ``None`` after the chunk.

        Raises:
            SerializationError: the transfer is longer than its front says, or the front cannot be read.
        """
        self._filled += count
        self._left -= count
        while self._filled == len(self._memory):
            if not self._go_on():
                return None
        return self._memory[self._filled : self._filled + self._left] if self._left else None

    def message(self, data: bytes) -> None:
        """Take a message that consists of whole units.

        Raises:
            SerializationError: it does not, or a unit does not fit those before it.
        """
        rest = memoryview(data)
        while rest:
            if len(rest) < UNIT_HEAD.size:
                raise SerializationError("a message ends in the middle of a unit's header")
            room = self.unit(*UNIT_HEAD.unpack_from(rest))
            rest = rest[UNIT_HEAD.size :]
            while room is not None:
                piece, rest = rest[: len(room)], rest[len(room) :]
                if not piece:
                    raise SerializationError("a message ends in the middle of a chunk")
                room[: len(piece)] = piece
                room = self.filled(len(piece))

    def _go_on(self) -> bool:
        """Begin with the next piece; deliver the frame and return False if there is none."""
        frame: Any = self._memory
        if self._arrival is None and self._begin is not None and frame[0] & SCATTERED:
            self._arrival = self._begin(self._memory)
            self._blanks, self.landing = self._arrival.blanks(), self._arrival.landing
        if (piece := next(self._blanks, None)) is not None:
            self._memory, self._filled = piece, 0
            return True
        if self._left:
            raise SerializationError(f"a transfer is {self._left} bytes longer than its front says")
        if self._arrival is not None:
            frame = self._arrival.frame()
        self.drop()  # first: its memory is the receiver's
        self._deliver(frame)
        return False
