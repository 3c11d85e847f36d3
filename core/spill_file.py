"""``SpillFile``: arrays whose memory is in a file, so that the kernel keeps in memory what is in use of them, and no more.

Pages that are used come back by themselves, and what is written to them reaches the file: for a program such an array is like
any other. The file has no name, so nothing of it is left when the process has ended, however it ended.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import threading
import weakref
from typing import Any

import numpy as np

from .shared_memory import Descriptor, fork_count
from .types import Array

_MAP_FIXED = 0x10  # Linux's; Python has no name for it
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of fallocate(2)
_WRITABLE = mmap.PROT_READ | mmap.PROT_WRITE
_MOST_WRITTEN = 1 << 30  # bytes: Linux writes less than 2 GiB at once


class SpillFile:
    """File that grows by each array, and gives back the disk space of those that nothing refers to any more.

    Args:
        folder: where it is; not one that is in memory itself, as ``/dev/shm`` is.

    Raises:
        OSError: there is no such folder, or no file can be made in it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        number, name = tempfile.mkstemp(dir=folder)
        os.unlink(name)
        self._file = Descriptor(number)  # closed with its last array
        self._end = 0  # places are not used again: files have holes, and their addresses do not run out

    def store(self, content: Array) -> Array:
        """Return a copy of an array of bytes, writable, whose memory is in the file.

        Args:
            content: uint8, one dimension, in order, not empty.

        Raises:
            OSError: the disk is full, or no mapping is left.
        """
        size = content.nbytes
        with self._lock:
            offset = self._end
            self._end += -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        os.posix_fallocate(self._file.number, offset, size)  # without it, a full disk would end the process by SIGBUS
        try:
            self._write(content, offset)
            block = _Block(self._file, offset, size)
        except BaseException:
            _punch_hole(self._file, offset, size)
            raise
        return np.asarray(block)

    def _write(self, content: Array, offset: int) -> None:
        rest = content.data
        while rest:
            written = os.pwrite(self._file.number, rest[:_MOST_WRITTEN], offset)
            rest, offset = rest[written:], offset + written


class _Block:
    """Mapped part of a file. It ends when no array is over it any more.

    The mapping is made by the C library: Python's own would keep a descriptor for each.
    """

    def __init__(self, file: Descriptor, offset: int, size: int) -> None:
        self._file, self._offset, self._size, self._private = file, offset, size, False
        self._address = _map(None, size, mmap.MAP_SHARED, file, offset)
        self.__array_interface__ = {"data": (self._address, False), "shape": (size,), "typestr": "|u1", "version": 3}
        weakref.finalize(self, _end_block, self._address, size, file, offset, fork_count()).atexit = False
        _blocks.add(self)

    def make_private(self) -> None:
        """Map it again, so that a child and this process do not see what the other writes from here on; once."""
        if not self._private:  # mapped again, it would lose what was written since
            _map(self._address, self._size, mmap.MAP_PRIVATE | _MAP_FIXED, self._file, self._offset)
            self._private = True


_blocks: weakref.WeakSet[_Block] = weakref.WeakSet()


def _end_block(address: int, size: int, file: Descriptor, offset: int, forks: int) -> None:
    _library().munmap(address, size)
    if forks == fork_count():  # else a child that was forked meanwhile may read it
        _punch_hole(file, offset, size)


def _punch_hole(file: Descriptor, offset: int, size: int) -> None:
    """Give the disk space of a place back. A file system that has no holes keeps it until the file is closed."""
    _library().fallocate(file.number, _KEEP_SIZE | _PUNCH_HOLE, offset, size)


def _map(address: int | None, size: int, flags: int, file: Descriptor, offset: int) -> int:
    place: int = _library().mmap(address, size, _WRITABLE, flags, file.number, offset)
    if place == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "a part of a file cannot be mapped")
    return place


def _library() -> Any:
    global _c
    if _c is None:
        _c = ctypes.CDLL(None, use_errno=True)
        _c.mmap.restype = ctypes.c_void_p
        _c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
        _c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        _c.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return _c


_c: Any = None


def _before_fork() -> None:
    for block in list(_blocks):
        block.make_private()


os.register_at_fork(before=_before_fork)
