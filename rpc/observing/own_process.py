"""Resident memory of this process."""

from __future__ import annotations

import os
import resource
import sys

STATM = "/proc/self/statm"
MOST_STATM_BYTES = 256


def resident_bytes() -> int:
    """Return the resident memory of this process; where the system does not tell, the largest that it had."""
    try:
        # Looks come again and again, so without a file object; a kept descriptor would save 2 microseconds of 5.
        descriptor = os.open(STATM, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(descriptor, MOST_STATM_BYTES).split()[1]) * resource.getpagesize()
        finally:
            os.close(descriptor)
    except OSError:
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024
