"""Setting of glibc's allocator for training: keep freed memory, because getting it again costs more than most operations.

By default, glibc returns a freed array of more than 128 KiB to the kernel at once, and each page of the next array is then a
page fault: for a temporary of 1 MiB, 250 of them, about 100 us, where the arithmetic takes 20 us. With this setting up to
256 MiB are kept, and only blocks beyond 32 MiB are mapped one by one.

``telegrad run`` and ``spawn`` give their workers ``ENVIRONMENT``. Other programs may call ``keep_freed_memory``.
"""

from __future__ import annotations

import os
import sys

# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGEST = 256 << 20, 32 << 20

# glibc reads these variables when a process starts.
ENVIRONMENT = {"MALLOC_TRIM_THRESHOLD_": str(_KEPT), "MALLOC_MMAP_THRESHOLD_": str(_LARGEST)}


def keep_freed_memory() -> None:
    """Let this process keep up to 256 MiB of freed memory.

    Without glibc, or if the user has set one of its ``MALLOC_*`` environment variables, it does nothing.
    """
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _KEPT)
