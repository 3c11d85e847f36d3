"""``Transfer``: a large frame that leaves in units through a socket or a gRPC stream, from the memory of its sender.

    BEGIN, size of the front | the front, then the pieces: CHUNK, its size | bytes | CHUNK ...

It leaves in chunks, so that it can be cut: then CUT comes instead of the next chunk, and the receiver drops the transfer.
``writer.py`` writes it, ``incoming.py`` puts it together.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import Any, Protocol

from ..frame import HEAD_BYTES, LATE_SECONDS, FrameHandle
from .chunk_size import ChunkSize

UNIT_HEAD = struct.Struct("<BQ")  # kind of the unit; its size in bytes, or the number of an offered segment
DESCRIPTOR = struct.Struct("i")
MOST_UNIT_PARTS = 512  # of one write; the system's limit is 1024


class Kind(IntEnum):
    """Kind of a unit on a bulk socket."""

    BEGIN = 1
    CHUNK = 2
    CUT = 3
    OFFER = 4


class UnitTarget(Protocol):
    """Socket or stream that takes units."""

    def sendmsg(self, parts: Sequence[Any], ancillary: Sequence[Any], flags: int, /) -> int:
        """Take the parts of a unit, or some of their bytes; return the number of bytes.

        Args:
            parts: bytes-like objects.
            ancillary: a descriptor, for a Unix socket.
            flags: those of the system, for a socket.

        Raises:
            BlockingIOError: there is no room.
            OSError: the target is broken.
        """


class Transfer:
    """Large frame that leaves in units: chunks, the first of them with the beginning.

    Args:
        front: bytes-like parts of the front, with its table.
        pieces: the memory of the pieces, in their order.
        handle: names the frame, so that it can be withdrawn.
        chunk: size of its chunks; it learns from them.
    """

    def __init__(
        self,
        front: Sequence[Any],
        pieces: Iterable[Any],
        handle: FrameHandle | None,
        chunk: ChunkSize | None = None,
    ) -> None:
        self._chunk = chunk or ChunkSize()
        self._front_bytes = sum(map(len, front))
        self._parts = [memoryview(part) for part in (*front, *pieces) if len(part)]
        self._ends = list(accumulate(map(len, self._parts)))
        self._handle = handle
        self._since = time.monotonic()
        self._lock = threading.Lock()
        self._begun = self._last = self._over = False  # a unit of it leaves or has left; its last chunk; its last unit
        self._withdrawn = self._told = False  # told: ``withdraw`` has returned True
        # The unit that leaves: its end in the frame, its parts, and the bytes of each write.
        self._unit: tuple[int, list[Any], list[int]] = (-1, [], [])
        self.released = False  # the sender's memory is not needed any more
        if handle is not None:
            handle.taken(self)

    # -- the thread that writes

    def write(self, target: UnitTarget, waits: bool = False) -> bool:
        """Write once; return True if nothing is left to write.

        Args:
            target: the socket or stream.
            waits: the target may wait for room.

        Raises:
            BlockingIOError: the socket has no room.
            OSError: the socket is broken.
        """
        before, parts, counts = self._unit
        if sum(counts) == sum(map(len, parts)):
            self._begin_unit()
            _, parts, counts = self._unit
        if parts:
            began = time.monotonic()
            try:
                left = _after(parts, sum(counts)) if counts else parts
                counts.append(target.sendmsg(left, (), 0 if waits else socket.MSG_DONTWAIT))
            except (BlockingIOError, MemoryError):
                if not counts:
                    self._undo_unit(before)
                raise
            if waits:
                self._chunk.wrote(counts[-1], time.monotonic() - began)
            self._handle = None  # handle and transfer are a cycle
            if not self._over or sum(counts) < sum(map(len, parts)):
                return False
        # Nothing of its memory is kept: the handle, and with it this transfer, may live until the call's deadline.
        self._unit, self._parts = (self._unit[0], [], []), []
        self.released = True
        return True

    def copy(self) -> None:
        """Copy the parts of the frame whose memory may change before it is written."""
        self._parts = [part if type(part.obj) is bytes else memoryview(bytes(part)) for part in self._parts]
        self.released = True

    def _begin_unit(self) -> None:
        """Set the next unit, without parts if there is none, and at the same time the marks that follow from it."""
        with self._lock:
            place = self._unit[0]
            if self._over or (self._withdrawn and not self._begun):
                self._unit = place, [], []
            elif self._withdrawn:
                cut = [UNIT_HEAD.pack(Kind.CUT, 0)]
                self._unit, self._over = (place, cut, []), True
            else:
                head = b""
                if place < 0:
                    self._restamp()
                    head, place = UNIT_HEAD.pack(Kind.BEGIN, self._front_bytes), 0
                views = self._views(place, min(place + self._chunk.value, self._ends[-1]))
                stop = place + sum(map(len, views))
                chunk = [head + UNIT_HEAD.pack(Kind.CHUNK, stop - place), *views]
                over = stop == self._ends[-1]
                self._unit, self._begun, self._last, self._over = (stop, chunk, []), True, over, over

    def _undo_unit(self, place: int) -> None:
        """Take back a unit, and the marks that followed from it, because nothing of it has left."""
        with self._lock:
            self._unit = place, [], []
            self._begun, self._last, self._over = place >= 0, False, False

    def _restamp(self) -> None:
        handle = self._handle
        if handle is not None and time.monotonic() - self._since > LATE_SECONDS and len(self._parts[0]) >= HEAD_BYTES:
            head, rest = self._parts[0][:HEAD_BYTES], self._parts[0][HEAD_BYTES:]
            self._parts[0] = memoryview(handle.restamp(bytes(head)) + bytes(rest))

    def _views(self, start: int, stop: int) -> list[Any]:
        """Return views of the bytes from ``start`` to ``stop``, or of fewer, of ``MOST_UNIT_PARTS`` parts at most."""
        views: list[Any] = []
        index = bisect_right(self._ends, start)
        while start < stop and len(views) < MOST_UNIT_PARTS - 1:
            part = self._parts[index]
            offset = start - (self._ends[index] - len(part))
            view = part[offset : offset + stop - start]
            views.append(view)
            start += len(view)
            index += 1
        return views

    def release(self) -> None:
        """Release the sender's memory: copy the rest of this unit, and cut the transfer after it."""
        with self._lock:
            self._withdrawn = True
            place, parts, counts = self._unit
            self._unit = place, [b"".join(_after(parts, sum(counts)))], [0]
            self._parts = []
        self.released = True

    # -- other threads

    def withdraw(self) -> bool:
        """Send no more of it; return True, once, if it does not arrive."""
        with self._lock:
            self._abandon()
            if self._last or self._told:  # the last chunk may still be taken back, if the target has no room for it
                return False
            self._told = True
            return True

    def take_back(self) -> bool:
        """Count it as not sent, after the last write; return False if all of it has left, or it was withdrawn."""
        with self._lock:
            _, parts, counts = self._unit
            if self._told or (self._last and sum(counts) == sum(map(len, parts))):
                return False
            self._told = True
            self._handle = None
            return True

    def take_unsent(self) -> tuple[bytes, FrameHandle | None] | None:
        """Return the frame, which is not scattered, and its handle, to send it another way; ``None`` if a part has left."""
        parts, handle = self._parts, self._handle
        return None if self._begun or not self.take_back() else (b"".join(parts), handle)

    def abandon(self) -> None:
        """Send no more of it, unless its last chunk is leaving."""
        with self._lock:
            self._abandon()

    def _abandon(self) -> None:
        # lock held
        if not self._last:
            self._withdrawn = True
            self._handle = None
            if not self._begun:
                self.released = True

    @property
    def withdrawn(self) -> bool:
        """Return whether it was withdrawn."""
        return self._withdrawn


class Offer:
    """Descriptor of a new segment that is sent to the receiver.

    Args:
        number: number of the segment.
        descriptor: descriptor of the segment, which stays open until the offer has left.
    """

    withdrawn = False

    def __init__(self, number: int, descriptor: int) -> None:
        self._number = number
        self._descriptor = descriptor
        self._counts: list[int] = []
        self.released = False

    def write(self, target: UnitTarget, waits: bool = False) -> bool:
        """Write it, unless it has left; return True (see ``Transfer.write``)."""
        if not self._counts:
            data = UNIT_HEAD.pack(Kind.OFFER, self._number)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, DESCRIPTOR.pack(self._descriptor))]
            try:
                self._counts.append(target.sendmsg([data], rights, socket.MSG_DONTWAIT))
            except (BlockingIOError, ConnectionError):
                raise
            except OSError:
                pass  # too many descriptors are on their way: the segment is not used
        self.released = True
        return True

    def copy(self) -> None:
        """Let the caller go on. The descriptor stays open."""
        self.released = True

    def take_back(self) -> bool:
        """Return whether it has not left (see ``Transfer.take_back``)."""
        return not self._counts

    def take_unsent(self) -> tuple[bytes, FrameHandle | None] | None:
        """Return ``None``: an offer is not sent another way."""
        return None

    def abandon(self) -> None:
        """Do nothing: an offer is not withdrawn."""

    def release(self) -> None:
        """Let the caller go on. Another thread writes the offer when there is room."""
        self.released = True


def _after(parts: list[Any], sent: int) -> list[Any]:
    """Return ``parts`` without their first ``sent`` bytes."""
    for index, part in enumerate(parts):
        if sent < len(part):
            return [part[sent:] if sent else part, *parts[index + 1 :]]
        sent -= len(part)
    return []
