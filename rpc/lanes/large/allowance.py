"""``Allowance``: bound of the bytes, and of the number, of the segments that a lane holds."""

from __future__ import annotations

import os
import resource
import threading

SHARE_OF_MEMORY = 8  # an eighth of the machine's memory
SHARE_OF_DESCRIPTORS = 16  # a sixteenth of the process's descriptors
MOST_SEGMENTS = 1024


class Allowance:
    """Bound of bytes and of number, shared by all sessions of a lane. Any thread.

    Args:
        size: most bytes.
        number: most segments.
    """

    def __init__(self, size: int, number: int) -> None:
        self._lock = threading.Lock()
        self._size = size
        self._number = number

    def reserve(self, size: int) -> bool:
        """Reserve one segment of ``size`` bytes; return False if that is more than is left."""
        with self._lock:
            if size > self._size or not self._number:
                return False
            self._size -= size
            self._number -= 1
            return True

    def give_back(self, size: int) -> None:
        """Give one segment of ``size`` bytes back."""
        with self._lock:
            self._size += size
            self._number += 1


def share_of_process() -> Allowance:
    """Return the allowance of a lane for segments: a share of the machine's memory and of the process's descriptors."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Allowance(memory // SHARE_OF_MEMORY, min(descriptors // SHARE_OF_DESCRIPTORS, MOST_SEGMENTS))
