"""``SealedFile``: bytes in an anonymous file that no process changes any more, and that are mapped only where they are used.

Its pages are written, not mapped and then filled: a page fault for each costs more than all the rest.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from typing import Any

from .segments import MAPPING_OPTIONS, Descriptor, check_sealed, new_memory_file, seal
from .transit import Address


class SealedFile:
    """Anonymous file of a fixed content. It closes when nothing refers to it any more; mappings of it stay.

    Args:
        descriptor: its descriptor, which this object closes.
    """

    __slots__ = ("_descriptor", "_identity")

    def __init__(self, descriptor: Descriptor) -> None:
        status = os.fstat(descriptor.number)
        self._descriptor = descriptor
        self._identity = status.st_dev, status.st_ino

    def address(self) -> Address:
        """Return where processes of this machine find it, until it is closed."""
        return Address(os.getpid(), self._descriptor.number, self._identity)

    def map(self) -> mmap.mmap:
        """Return its bytes, as ``map_sealed`` does.

        Raises:
            OSError: it is closed, or no descriptor is left.
        """
        # Another thread may close it now, and the number have another file then.
        given = Descriptor(os.dup(self._descriptor.number))
        if SealedFile(given)._identity != self._identity:
            raise FileNotFoundError("this file is closed")
        return _map(given)

    def close(self) -> None:
        """Close the descriptor, when no other process is to get it any more."""
        self._descriptor.close()


def write_sealed(size: int, pieces: Iterable[tuple[int, Any]]) -> SealedFile:
    """Return a new file of ``size`` bytes.

    Args:
        size: of the file.
        pieces: their positions in it, and their bytes. The rest is zero.

    Raises:
        MemoryError, OSError: as for ``create_segment``.
    """
    made = new_memory_file(size)
    os.ftruncate(made.number, size)
    for position, piece in pieces:
        rest = memoryview(piece).cast("B")
        while rest:
            written = os.pwrite(made.number, rest, position)
            rest, position = rest[written:], position + written
    seal(made, contents=True)
    return SealedFile(made)


def open_sealed(address: Address) -> SealedFile:
    """Return the file that a process of this machine has told of.

    Raises:
        OSError: that process has ended or has closed it, or does not permit it.
        ValueError: it is no segment.
    """
    given = Descriptor(address.open(os.O_RDONLY))
    check_sealed(given.number)
    return SealedFile(given)


def map_sealed(address: Address) -> mmap.mmap:
    """Return the bytes of a file that a process of this machine has told of. No other process sees what is written to them.

    Raises:
        OSError, ValueError: as for ``open_sealed``.
    """
    given = Descriptor(address.open(os.O_RDONLY))
    check_sealed(given.number)
    return _map(given)


def _map(given: Descriptor) -> mmap.mmap:
    memory = mmap.mmap(given.number, 0, mmap.MAP_PRIVATE, **MAPPING_OPTIONS)
    given.close()
    return memory
