"""``Buffers``: memory for arrays that arrive as bytes, kept for a while after its last use.

The kernel zeroes fresh memory, and may have to look for huge pages first. Bytes are received several times as fast into memory
that was used before. NumPy does not keep the memory of large arrays, and glibc keeps no blocks above 32 MiB.
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

from ....core.extend import aligned_memory
from ...threads.timers import Ticker, every
from .heap import HEAP
from .lender import IDLE_SECONDS, class_size

BYTES: Any = np.dtype(np.uint8)
WARM_BYTES = 1 << 20  # smaller blocks are left to the allocator
KEPT_BUFFER_BYTES = 256 << 20  # most bytes that are kept idle


class Buffers:
    """Memory for arrays that arrive. For any thread. Finalizers give memory back, so there is no lock, and each step is atomic.

    Args:
        most: most bytes that are kept idle.
    """

    def __init__(self, most: int = KEPT_BUFFER_BYTES) -> None:
        self._most = most
        self._numbers = count()
        self._idle: dict[int, tuple[mmap.mmap, float]] = {}  # blocks, and since when they are idle; the latest last
        self._trimmer: Ticker | None = None  # of the loop of the lane

    def take(self, size: int) -> memoryview:
        """Return writable memory of ``size`` bytes, whose content is not set.

        Raises:
            MemoryError: the system has not enough memory.
        """
        if size < WARM_BYTES:
            small: Any = aligned_memory((size,), BYTES)
            return memoryview(small)
        wanted = class_size(size)
        try:
            block = self._pop(wanted) or _new_block(wanted)
        except (OSError, OverflowError) as error:
            raise MemoryError from error
        # Views of the array refer to the array itself, because its memory belongs to no other array.
        array: Any = np.ndarray((size,), np.uint8, block)
        weakref.finalize(array, self._put, block).atexit = False
        return memoryview(array)

    def trim_in_a_while(self, loop: asyncio.AbstractEventLoop) -> None:
        """Free memory that idles for a minute, and the heap's, from now on until nothing is kept. Any thread."""
        trimmer = self._trimmer = self._trimmer or every(IDLE_SECONDS, self._trim_idle, loop)
        if not trimmer.ticking:
            trimmer.start()

    def _trim_idle(self) -> bool:
        now = time.monotonic()
        self.trim(now)
        HEAP.trim(now)
        return bool(self._idle or HEAP)

    def trim(self, now: float) -> None:
        """Free blocks that have been idle for ``IDLE_SECONDS``."""
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
        with suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_HUGEPAGE)
    return block
