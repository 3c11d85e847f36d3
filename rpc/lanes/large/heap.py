"""Heap of the C library: it keeps freed memory while large frames travel as ``bytes``, and gives it back afterwards.

Chunks for gRPC, gRPC's own copies of them, and records of TLS come from ``malloc``. When they are freed, ``malloc`` gives the
pages at the end of the heap to the kernel, which must clear them again for the next frame. That would take most of the time
of a large frame.
"""

from __future__ import annotations

import ctypes
import os
import time
from functools import cache
from typing import Any

from .lender import IDLE_SECONDS

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of malloc.h
KEPT_HEAP_BYTES = 256 << 20  # most bytes that are kept at the end of the heap
# Larger blocks are mapped one by one. glibc sets the same value by itself when blocks of that size are freed.
MAPPED_BYTES = 32 << 20


class Heap:
    """Heap of this process. For any thread."""

    def __init__(self) -> None:
        self._used = 0.0

    def keep(self) -> None:
        """Keep freed memory for a minute from now on. Does nothing if the user has set options of malloc."""
        self._used = time.monotonic()
        _set_thresholds()

    def trim(self, now: float) -> None:
        """Give the kept memory to the kernel, if the last ``keep`` was a minute ago.

        Args:
            now: the time in monotonic seconds.
        """
        if self and now - self._used >= IDLE_SECONDS:
            self._used = 0.0
            _libc().malloc_trim(0)

    def __bool__(self) -> bool:
        """Return whether freed memory is kept now."""
        return bool(self._used) and _set_thresholds()


HEAP = Heap()  # a process has one


@cache
def _libc() -> Any:
    return ctypes.CDLL(None)


@cache
def _set_thresholds() -> bool:
    """Set, once, how much memory malloc keeps; return whether that was possible. musl has no such options."""
    chosen = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if chosen or not hasattr(_libc(), "mallopt"):
        return False
    mallopt = _libc().mallopt
    return bool(mallopt(MMAP_THRESHOLD, MAPPED_BYTES) and mallopt(TRIM_THRESHOLD, KEPT_HEAP_BYTES))
