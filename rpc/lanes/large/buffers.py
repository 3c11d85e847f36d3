"""``Buffers``: memory for arrays that arrive as bytes, kept for a while after its last use.

The kernel zeroes fresh memory, and may have to look for huge pages first; into memory that was used before, the same bytes are
received several times as fast. NumPy keeps none of a large array's, and glibc none beyond 32 MiB.
"""

from __future__ import annotations

import asyncio
import mmap
import time
import weakref
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

from ..bulk import new_memory
from .heap import HEAP
from .lender import IDLE_SECONDS, class_size

WARM_BYTES = 1 << 20  # less is left to the allocator
KEPT_BYTES = 256 << 20  # most that idles


class Buffers:
    """Memory for what arrives. Any thread; finalizers give back, so there is no lock, and each step is atomic.

    Args:
        most: bytes that are kept idle.
    """

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._numbers = count()
        self._idle: dict[int, tuple[mmap.mmap, float]] = {}  # blocks, and since when; the latest last
        self._trimming = False

    def take(self, size: int) -> memoryview:
        """Return writable memory of ``size`` bytes, which are not set.

        Raises:
            MemoryError: there is none.
        """
        if size < WARM_BYTES:
            return new_memory(size)
        wanted = class_size(size)
        try:
            block = self._pop(wanted) or _new_block(wanted)
        except (OSError, OverflowError) as error:
            raise MemoryError from error
        # Views of the array refer to it, since what it lies over is no array: were it one, they would refer to that.
        array: Any = np.ndarray((size,), np.uint8, block)
        weakref.finalize(array, self._put, block).atexit = False
        return memoryview(array)

    def trim_in_a_while(self, loop: asyncio.AbstractEventLoop) -> None:
        """Free what idles for a minute, and the heap's memory, from now on until there is none. On the loop."""
        if not self._trimming:
            self._trimming = True
            loop.call_later(IDLE_SECONDS, self._trim, loop)

    def _trim(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        self.trim(now)
        HEAP.trim(now)
        self._trimming = False
        if self._idle or HEAP:
            self.trim_in_a_while(loop)

    def trim(self, now: float) -> None:
        """Free what has been idle for too long."""
        for number, (_, since) in self._idle.copy().items():
            if now - since >= IDLE_SECONDS:
                self._idle.pop(number, None)

    def __len__(self) -> int:
        """Return how many blocks are idle."""
        return len(self._idle)

    def _pop(self, wanted: int) -> mmap.mmap | None:
        for number, (block, _) in reversed(self._idle.copy().items()):
            if len(block) == wanted and self._idle.pop(number, None) is not None:
                return block
        return None

    def _put(self, block: mmap.mmap) -> None:
        self._idle[next(self._numbers)] = block, time.monotonic()
        idle = self._idle.copy()
        excess = sum(len(each) for each, _ in idle.values()) - self._most
        for number, (each, _) in idle.items():
            if excess <= 0:
                break
            self._idle.pop(number, None)
            excess -= len(each)


def _new_block(size: int) -> mmap.mmap:
    block = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            block.madvise(mmap.MADV_HUGEPAGE)
    return block
