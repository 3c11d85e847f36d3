"""What becomes of freed memory: it is kept for the next array instead of going back to the system.

A training step makes and frees the same arrays again and again. As glibc is set up, those above some hundred kilobytes
are fetched from the system each time, which clears every page of them: a fifth of the time of a step of an MLP with a
million parameters. So freed memory is kept, up to a bound. Variables ``MALLOC_..._`` in the environment have the last word.
"""

from __future__ import annotations

import ctypes
import os

# Parameters of mallopt(3), and what they are set to. The first is the most that glibc allows.
MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES = -3, 32 << 20  # larger arrays come from the system, and go back at once
TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES = -1, 128 << 20  # so much free memory at the heap's end is kept


def keep_freed_memory() -> bool:
    """Tell the allocator; whether it listened. Other C libraries than glibc have their own ways and are left alone."""
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES) and mallopt(TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES))
