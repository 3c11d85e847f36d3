"""``Arrival``: a scattered frame whose front has arrived, and memory for its pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ....base.errors import SerializationError
from ..frame import SCATTERED, new_memory
from .landing import FindLanding, no_landing
from .scattered import NO_SEGMENT, FramePiece, ScatteredFrame

if TYPE_CHECKING:
    from .borrower import Borrower
    from .buffers import Buffers

SCRATCH_BYTES = 1 << 20
CHECKED_BYTES = 64 << 20  # for more, the free memory is checked first: the kernel promises more than it has


def available_bytes() -> int:
    """Return how many bytes the machine can give without swapping, according to the kernel."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 1 << 62


class Arrival:
    """Scattered frame that is arriving.

    Args:
        front: the frame's front, writable.
        pieces: the pieces of the table.
        borrower: has the segments.
        buffers: gives memory for the pieces that are in no segment.
        find: gets the front, and the size of the piece if one follows on the socket; returns where it is to land, if its
            receiver has said so.

    Attributes:
        landing: what ``find`` returned.
    """

    def __init__(
        self,
        front: memoryview,
        pieces: list[FramePiece],
        borrower: Borrower,
        buffers: Buffers,
        find: FindLanding = no_landing,
    ) -> None:
        front[0] &= ~SCATTERED & 0xFF
        self._front = front
        self._pieces = pieces
        self._borrower = borrower
        self._buffers = buffers
        self._streamed: list[int] = []
        end = 0
        for position, size, segment in pieces:
            if position < end:
                raise SerializationError("the pieces of a frame overlap, or are in no order")
            end = position + size
            if segment == NO_SEGMENT:
                self._streamed.append(size)
        self._memories: list[memoryview] = []
        self._problem = ""
        self.landing = find(front, *self._streamed) if len(self._streamed) == 1 else None
        if self.landing is not None:
            self._memories = [self.landing.memory]
        elif self._streamed:
            self._problem = self._allocate(sum(self._streamed))

    def _allocate(self, total: int) -> str:
        """Take memory for the pieces that follow on the socket; return why there is none, or an empty text."""
        if total > CHECKED_BYTES and total > available_bytes():
            return (
                f"a message with {total:,} bytes of arrays is larger than this worker's free memory; send it in parts"
            )
        try:
            self._memories = [self._buffers.take(size) for size in self._streamed]
        except (MemoryError, ValueError):
            self._memories = []
            return f"there is no memory for a message with {total:,} bytes of arrays; send it in parts"
        return ""

    def blanks(self) -> Iterator[memoryview]:
        """Yield the memory to fill from the socket, piece by piece. Without memory for the pieces, it is to be dropped."""
        if not self._problem:
            yield from self._memories
            return
        scratch, rest = new_memory(SCRATCH_BYTES), sum(self._streamed)
        while rest:
            yield scratch[:rest]
            rest -= len(scratch[:rest])

    def frame(self) -> Any:
        """Return the frame, when all pieces have arrived.

        Raises:
            SerializationError: the table names a segment that does not exist.
        """
        if not self._pieces:
            return self._front
        streamed = iter(self._memories)
        positions, memories = [], list[Any]()
        for position, size, segment in self._pieces:
            positions.append(position)
            memories.append(next(streamed, None) if segment == NO_SEGMENT else self._borrower.piece(segment, size))
        if self._problem:
            return ScatteredFrame(self._front, [], [], self._problem, sum(piece.size for piece in self._pieces))
        return ScatteredFrame(self._front, positions, memories)
