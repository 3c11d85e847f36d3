"""Cases of the footprint: from launch to the first answer of all workers, and the memory of an idle worker."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from .base import Case, Figures, Turn
from .calls import fan_out

KIB = 1024
SIZES = (2, 8, 32, 128)


def measure_start(turn: Turn) -> Figures:
    """Measure the time from the launch of the job until all other workers have answered a first call.

    Then the mean of all workers' resident memory, and of their own memory, in which a page that several processes share
    counts in parts.
    """
    others = fan_out(turn, os.getpid)
    seconds = time.monotonic() - turn.launched
    resident, own = (sum(column) / turn.workers for column in zip(*map(memory_of, [os.getpid(), *others])))
    return {"start": seconds, "memory": resident, "own memory": own}


def memory_of(pid: int) -> tuple[int, int]:
    """Return a process's resident bytes, and those in which shared pages count in parts (Rss and Pss)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    rss, pss = (int(found) * KIB for found in re.findall(r"^(?:Rss|Pss):\s+(\d+) kB", text, re.MULTILINE))
    return rss, pss


def start_of(workers: int) -> Case:
    """Return the case of that size."""
    size = f"{workers} workers"
    more = {f"{figure} of one of {size}": figure for figure in ("memory", "own memory")}
    return Case(f"start, {size}", measure_start, "start", workers=workers, alone=True, quick=workers == 2, more=more)


CASES = tuple(map(start_of, SIZES))
