"""Settings of glibc's allocator: keep freed memory while training, and share arenas if the address space is limited.

By default, glibc returns a freed array of more than 128 KiB to the kernel at once, and each page of the next array is then a
page fault: for a temporary of 1 MiB, 250 of them, about 100 us, where the arithmetic takes 20 us. With this setting up to
256 MiB are kept, and only blocks beyond 32 MiB are mapped one by one.

``telegrad run`` and ``spawn`` give their workers ``ENVIRONMENT``. Other programs may call ``keep_freed_memory``.

For each new thread glibc makes an arena, up to eight for each core, and reserves 64 MiB of addresses for it. Under a limit of
addresses, as by ``ulimit -v``, these reserves leave no room for stacks and arrays: of 820 MiB of a worker 570 are reserves.
So an agent calls ``share_arenas``.
"""

from __future__ import annotations

import os
import sys

# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_KEPT, _LARGEST = 256 << 20, 32 << 20
_ARENAS = 2

# glibc reads these variables when a process starts.
ENVIRONMENT = {"MALLOC_TRIM_THRESHOLD_": str(_KEPT), "MALLOC_MMAP_THRESHOLD_": str(_LARGEST)}


def keep_freed_memory() -> None:
    """Let this process keep up to 256 MiB of freed memory.

    Without glibc, or if the user has set one of its ``MALLOC_*`` environment variables, it does nothing.
    """
    if not any(name.startswith("MALLOC_") for name in os.environ):
        _set({_MMAP_THRESHOLD: _LARGEST, _TRIM_THRESHOLD: _KEPT})


def share_arenas() -> None:
    """Let this process make two arenas at most, if its address space is limited and the user has set no other number."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and "MALLOC_ARENA_MAX" not in os.environ:
        _set({_ARENA_MAX: _ARENAS})


def _set(options: dict[int, int]) -> None:
    """Set options of the allocator, if it is glibc's."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in options.items():
            mallopt(option, value)
