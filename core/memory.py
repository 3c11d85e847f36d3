"""Freed memory stays with the process, because taking it anew costs more than most operations do.

A freed array of more than 128 KiB goes back to the kernel at once, as glibc sees it, and each page of the next one is then a
fault: a temporary of 1 MiB costs 250 of them, some 100 us, where the arithmetic takes 20. So up to 256 MiB are kept, and only
blocks beyond 32 MiB are mapped by themselves. Whoever sets one of glibc's own ``MALLOC_*`` variables decides alone.
"""

from __future__ import annotations

import os
import sys

# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGEST = 256 << 20, 32 << 20


def keep_freed_memory() -> None:
    """Tell the allocator; where it is another than glibc's, or the user told it something, do nothing."""
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _KEPT)
