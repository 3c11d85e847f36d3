"""``ScatteredFrame``: a frame that arrived in several blocks of memory, and the table that says where its parts are.

A frame is scattered at its sender: large parts are taken out and travel apart, each to memory of its own. The rest is the
*front*, in the frame's order, with a table after it:

    front | position, size and segment of each piece | numbers of segments in notices | TABLE

The front's first byte has the bit ``SCATTERED`` (``base.py``). A table without a front has only notices about segments.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

from ....base.errors import SerializationError

NO_SEGMENT = 0
PIECE_WORDS = 3
TABLE = struct.Struct("<IIII")  # numbers of pieces, and of segments that may be reused, are refused, are gone


class FramePiece(NamedTuple):
    """Part of a frame that travels apart.

    Attributes:
        position: position of its first byte in the frame.
        size: its length in bytes.
        segment: number of the segment in which it is; ``NO_SEGMENT`` if its bytes follow on a socket.
    """

    position: int
    size: int
    segment: int


class Notices(NamedTuple):
    """Numbers of segments: those that their lender may reuse, those that it must forget, and those that it has dropped."""

    reusable: Sequence[int] = ()
    refused: Sequence[int] = ()
    gone: Sequence[int] = ()


def encode_table(pieces: Sequence[FramePiece], notices: Notices) -> bytes:
    """Return the table that follows a front."""
    words = [*chain(*pieces, *notices)]
    return struct.pack(f"<{len(words)}QIIII", *words, len(pieces), *map(len, notices))


def decode_table(data: memoryview) -> tuple[memoryview, list[FramePiece], Notices]:
    """Return the front with which ``data`` begins, its pieces, and the notices of the table.

    Raises:
        SerializationError: there is no valid table in ``data``.
    """
    if len(data) < TABLE.size:
        raise SerializationError(f"a scattered frame of {len(data)} bytes has no table")
    count, reusable, refused, gone = TABLE.unpack_from(data, len(data) - TABLE.size)
    reusable += PIECE_WORDS * count  # from here on, the ends of the parts of the table
    refused += reusable
    total = refused + gone
    end = len(data) - TABLE.size - 8 * total
    if end < 0:
        raise SerializationError(f"a scattered frame of {len(data)} bytes claims to have a table of {total} words")
    words = struct.unpack_from(f"<{total}Q", data, end)
    table = words[: PIECE_WORDS * count]
    pieces = [*map(FramePiece, table[::PIECE_WORDS], table[1::PIECE_WORDS], table[2::PIECE_WORDS])]
    return data[:end], pieces, Notices(words[len(table) : reusable], words[reusable:refused], words[refused:])


class ScatteredFrame:
    """Frame that arrived in several blocks of memory.

    Args:
        front: the frame without the pieces: header and tables are in it.
        positions: positions of the pieces in the frame, ascending.
        memories: memory of the pieces, each writable and used by nothing else.
        problem: why the pieces could not be received; empty if they were.
        missing: number of bytes of pieces that could not be received.
    """

    __slots__ = ("_ends", "_memories", "_positions", "_size", "front", "problem")

    def __init__(
        self,
        front: memoryview,
        positions: Sequence[int],
        memories: Sequence[memoryview],
        problem: str = "",
        missing: int = 0,
    ) -> None:
        self.front = front
        self._positions = positions
        self._memories = memories
        self._ends = list(accumulate(map(len, memories), initial=0))  # bytes of the pieces before each
        self._size = len(front) + self._ends[-1] + missing
        self.problem = problem

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> int:
        """Return a byte of the front. Every frame begins with its front."""
        return int(self.front[index])

    def read(self, position: int, size: int) -> memoryview:
        """Return ``size`` bytes from ``position`` on: a whole piece without a copy, other bytes as a copy.

        Raises:
            SerializationError: the frame ends before that.
        """
        index = bisect_left(self._positions, position)
        if index < len(self._positions) and self._positions[index] == position and len(self._memories[index]) == size:
            return self._memories[index]
        if position + size > self._size:
            raise SerializationError(f"a frame of {self._size} bytes was read at {position + size}")
        if bisect_left(self._positions, position + size) == index and not self._inside(index - 1, position):
            start = position - self._ends[index]
            return memoryview(bytearray(self.front[start : start + size]))
        return memoryview(bytearray().join(self._parts(position, position + size)))

    def _inside(self, index: int, position: int) -> bool:
        return index >= 0 and position < self._positions[index] + len(self._memories[index])

    def _parts(self, position: int, stop: int) -> list[Any]:
        """Return views of the bytes between two positions."""
        parts = []
        while position < stop:
            index = bisect_right(self._positions, position)
            if self._inside(index - 1, position):
                offset = position - self._positions[index - 1]
                part = self._memories[index - 1][offset : offset + stop - position]
            else:
                limit = min(stop, self._positions[index]) if index < len(self._positions) else stop
                offset = position - self._ends[index]
                part = self.front[offset : offset + limit - position]
            if not len(part):
                raise SerializationError("the pieces of a scattered frame overlap")
            parts.append(part)
            position += len(part)
        return parts
