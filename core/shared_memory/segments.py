"""Segments: memory that several processes map, and that is freed with its last holder, however that process ended.

A segment is an anonymous file (``memfd``): no name in any folder, so nothing is left behind after ``kill -9``. A process
with its descriptor can map it. Arrays over it keep the mapping alive; views do so through their base.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..types import Array

# Before 3.13, a mapping always kept a second descriptor of its own.
_MAP_FIXED = 0x10  # Linux's; Python has no name for it
MAPPING_OPTIONS: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}


class Descriptor:
    """File descriptor that is closed once: when it is told to, or when nothing refers to it any more.

    An ``except`` clause that closes it would close it twice, or what has its number by then, if Ctrl-C came late.
    """

    number = -1  # of one whose making Ctrl-C ended

    def __init__(self, number: int) -> None:
        self.number = number

    # The default argument, because at the interpreter's end modules may be empty already.
    def close(self, close: Any = os.close) -> None:
        """Close it, unless it is closed."""
        number, self.number = self.number, -1
        if number >= 0:
            close(number)

    def __del__(self) -> None:
        self.close()


class Segment(mmap.mmap):
    """A mapped memfd: writable bytes that other processes may see too. It closes when nothing refers to it any more.

    Make one with ``create_segment`` or ``open_segment``.

    Attributes:
        identity: equal for all mappings of the same memory.
        keeps: an object that lives as long as the mapping.
    """

    identity: tuple[int, int]
    keeps: object = None
    _descriptor: Descriptor
    _private: bool

    def __new__(cls, descriptor: Descriptor, length: int, private: bool = False) -> Segment:
        flags = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED
        segment = super().__new__(cls, descriptor.number, length, flags, **MAPPING_OPTIONS)
        segment._descriptor = descriptor
        segment._private = private
        status = os.fstat(descriptor.number)
        segment.identity = (status.st_dev, status.st_ino)
        return segment

    @property
    def fd(self) -> int:
        """The descriptor, to be passed to other processes; -1 when it is closed."""
        return self._descriptor.number

    def array(
        self,
        dtype: npt.DTypeLike,
        shape: Sequence[int],
        offset: int = 0,
        strides: Sequence[int] | None = None,
    ) -> Array:
        """Return an array over the segment's bytes.

        Args:
            dtype: of the elements.
            shape: of the array.
            offset: the first byte to use.
            strides: in bytes; row-major by default.

        Raises:
            TypeError: the array would reach beyond the segment.
        """
        array: Array = np.ndarray(shape, dtype, self, offset, strides)
        return array

    def make_private(self) -> None:
        """Map the same bytes again in the same place, so that no other process sees what is written from here on; once.

        That is how a process keeps memory that it has, and that others may not change any more, from a child that it forks.

        Raises:
            OSError: the system refuses.
        """
        if self._private:  # mapped again, it would lose what was written since
            return
        size, place = len(self), ctypes.addressof(ctypes.c_char.from_buffer(self))
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        if libc.mmap(place, size, protection, mmap.MAP_PRIVATE | _MAP_FIXED, self.fd, 0) != place:
            raise OSError(ctypes.get_errno(), "a segment cannot be mapped again")
        self._private = True

    def close_descriptor(self) -> None:
        """Close the descriptor, when no other process is to get it any more. The mapping stays."""
        self._descriptor.close()


def create_segment(size: int) -> Segment:
    """Return a new segment of ``size`` zero bytes (at least one), all allocated: a later write cannot fail.

    Raises:
        MemoryError: the machine does not have that much memory.
        OSError: no descriptor or no space is left, or the system has no memfd (only Linux has).
    """
    made = new_memory_file(size)
    try:
        os.posix_fallocate(made.number, 0, max(size, 1))
        seal(made)
        return Segment(made, max(size, 1))
    except Exception:
        made.close()  # now, not when the error is forgotten
        raise


def new_memory_file(size: int) -> Descriptor:
    """Return the descriptor of a new anonymous file, which is empty, for ``size`` bytes.

    Raises:
        MemoryError, OSError: as for ``create_segment``.
    """
    if not hasattr(os, "memfd_create"):
        raise OSError(f"shared memory needs memfd_create(), which Linux has and {sys.platform} does not")
    # The kernel would allocate pages until none is left, and then kill a process.
    if size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise MemoryError(f"a shared-memory segment of {size} bytes is larger than this machine's memory")
    return Descriptor(os.memfd_create("telegrad", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))


def seal(made: Descriptor, contents: bool = False) -> None:
    """Fix the size of an anonymous file: if it shrank, its holders would die of SIGBUS.

    Args:
        made: its descriptor.
        contents: its bytes are fixed, too. No process maps it yet.
    """
    import fcntl

    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | (fcntl.F_SEAL_WRITE if contents else 0)
    fcntl.fcntl(made.number, fcntl.F_ADD_SEALS, seals)


def open_segment(fd: int, private: bool = False) -> Segment:
    """Return the segment of a descriptor that came from another process. The segment closes the descriptor.

    Args:
        fd: the descriptor.
        private: whether other processes do not see what is written here; pages are copied when they are written to.

    Raises:
        ValueError: it is not a segment, or one that could shrink. The descriptor is closed then.
    """
    given = Descriptor(fd)
    try:
        check_sealed(fd)
        return Segment(given, os.fstat(fd).st_size, private)
    except Exception:
        given.close()  # now, not when the error is forgotten
        raise


def check_sealed(fd: int) -> None:
    """Check that a descriptor that came from another process is that of a segment.

    Raises:
        ValueError: it is not, or of one that could shrink.
    """
    import fcntl

    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    except OSError:
        seals = 0
    if not seals & fcntl.F_SEAL_SHRINK:
        raise ValueError("this descriptor is not a shared-memory segment of create_segment()")
