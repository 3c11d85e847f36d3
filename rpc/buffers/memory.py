"""Memory of a buffer: a shared segment whose first page tells it from others, and says whether its owner has freed it.

Another process of the machine opens the owner's descriptor (``core/shared_memory/transit.py`` does the same) and maps the
segment once. A descriptor of that number may exist on another machine too, even with the same identity: so the mark, which is
random, decides. From then on it looks at the page, and at the owner's process, before and after each copy.
"""

from __future__ import annotations

import os
import secrets
import select
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ...core.shared_memory import Address, Descriptor, Segment, create_segment, open_segment

if TYPE_CHECKING:
    from ...core.extend import Array

BUFFER_HEAD_BYTES = 4096  # a page, so that the content begins at one
MARK_BYTES = 16
LIVE, FREED = 1, 2
SEALED_AT = MARK_BYTES + 1  # 1 from when it is sealed


class BufferPlace(NamedTuple):
    """Place of a buffer's memory, or of a whole copy, on the machine of its owner.

    Attributes:
        address: the owner's descriptor of the segment.
        mark: the bytes at the beginning of the segment.
    """

    address: Address
    mark: bytes


class BufferMemory:
    """Bytes of a buffer, mapped by this process.

    Args:
        segment: holds the head and the bytes.
        size: how many bytes follow the head.

    Attributes:
        content: the bytes, as an array of uint8.
    """

    def __init__(self, segment: Segment, size: int) -> None:
        self.content = segment.array(np.uint8, (size,), BUFFER_HEAD_BYTES)
        self._head = segment.array(np.uint8, (BUFFER_HEAD_BYTES,))
        self._segment = segment
        self._owner: Descriptor | None = None  # of the owner's process

    @property
    def mark(self) -> bytes:
        """The bytes that tell it from other memory."""
        return self._head[:MARK_BYTES].tobytes()

    @property
    def freed(self) -> bool:
        """Return whether its owner has freed it."""
        return bool(self._head[MARK_BYTES] != LIVE)

    @property
    def sealed(self) -> bool:
        """Return whether its owner has sealed it: nothing is written to it any more."""
        return bool(self._head[SEALED_AT])

    def seal(self) -> None:
        """Mark it as sealed, for all processes that map it."""
        self._head[SEALED_AT] = 1

    @property
    def owner_ended(self) -> bool:
        """Return whether the owner's process has ended, if it is another one."""
        return self._owner is not None and _has_ended(self._owner.number)

    def free(self) -> None:
        """Mark it as freed, for all processes that map it."""
        self._head[MARK_BYTES] = FREED
        self._segment.close_descriptor()

    def place(self) -> BufferPlace:
        """Return where other processes of this machine find it."""
        segment = self._segment
        return BufferPlace(Address(os.getpid(), segment.fd, segment.identity), self.mark)

    def private(self, keeps: object) -> Array:
        """Return its bytes, mapped so that what is written to them is seen nowhere else.

        Args:
            keeps: lives as long as they do.
        """
        segment = open_segment(os.dup(self._segment.fd), private=True)
        segment.close_descriptor()
        segment.keeps = keeps
        return segment.array(np.uint8, self.content.shape, BUFFER_HEAD_BYTES)

    def watch(self, owner: Descriptor) -> None:
        """Watch the owner's process by its descriptor, which lives as long as this object."""
        # A ``__del__()`` here would close it while another thread may still find this object in ``_mapped``.
        self._owner = owner


_mapped: WeakValueDictionary[bytes, BufferMemory] = WeakValueDictionary()  # by mark


def new_memory(size: int) -> BufferMemory:
    """Return the memory of a new buffer of ``size`` zero bytes.

    Raises:
        MemoryError: the machine does not have that much.
        OSError: no descriptor or no space is left.
    """
    memory = BufferMemory(create_segment(BUFFER_HEAD_BYTES + size), size)
    memory._head[:MARK_BYTES] = np.frombuffer(secrets.token_bytes(MARK_BYTES), np.uint8)
    memory._head[MARK_BYTES] = LIVE
    return memory


def map_memory(place: BufferPlace, size: int) -> BufferMemory | None:
    """Return the memory at a place, mapped by this process; ``None`` if it is on another machine or cannot be opened here."""
    memory = _mapped.get(place.mark)
    if memory is None and (memory := _map(place, size)) is not None:
        memory = _mapped.setdefault(place.mark, memory)
    return memory


def private_content(place: BufferPlace, size: int) -> Array | None:
    """Return the bytes of a sealed buffer or of a whole copy, mapped so that what is written to them here is seen nowhere else.

    A page is copied when it is first written to, none before. The bytes stay when the buffer is freed.

    Args:
        place: of the memory.
        size: bytes of the content.

    Returns:
        an array of uint8, or ``None`` if the memory is gone, or is not on this machine.
    """
    try:
        segment = open_segment(place.address.open(os.O_RDWR), private=True)
    except (OSError, ValueError):
        return None
    segment.close_descriptor()
    if len(segment) != BUFFER_HEAD_BYTES + size or segment[:MARK_BYTES] != place.mark:
        return None  # another segment has its number by now
    return segment.array(np.uint8, (size,), BUFFER_HEAD_BYTES)


def _map(place: BufferPlace, size: int) -> BufferMemory | None:
    try:
        owner = Descriptor(os.pidfd_open(place.address.process))  # first: the number may be another process's later
    except OSError:
        return None
    try:
        segment = open_segment(place.address.open(os.O_RDWR))
    except (OSError, ValueError):
        return None
    if len(segment) != BUFFER_HEAD_BYTES + size or segment[:MARK_BYTES] != place.mark:
        return None
    memory = BufferMemory(segment, size)
    memory.watch(owner)
    segment.close_descriptor()
    return memory


def _has_ended(process: int) -> bool:
    looking: Any = select.poll()
    looking.register(process, select.POLLIN)
    return bool(looking.poll(0))
