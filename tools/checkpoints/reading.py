"""Loads of mutated checkpoints: which errors they bring, how much CPU time and memory they take."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ...core.serialization import CheckpointError, load
from .mutation import Mutations

SECONDS = 1.0  # of CPU that a file may take
TIMES = 4  # its size that a file may take in memory, and
ALLOWANCE = 32 << 20  # bytes that a file of any size may take
_STATUS, _PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Reading(NamedTuple):
    """Outcome of the load of a file."""

    number: int
    size: int
    error: str  # name of its class, or "none"
    message: str
    seconds: float
    memory: int  # bytes by which the process grew at most

    def problem(self, measured: bool = True) -> str | None:
        """Return what is wrong with it, or ``None``; ``measured`` is false if time and memory are not judged."""
        if self.error not in ("none", CheckpointError.__name__):
            return f"file {self.number}: {self.error}: {self.message}"
        if measured and self.seconds > SECONDS:
            return f"file {self.number}, {self.size} bytes, took {self.seconds:.1f} s"
        if measured and self.memory > TIMES * self.size + ALLOWANCE:
            return f"file {self.number}, {self.size} bytes, took {self.memory >> 20} MiB"
        return None


def read(number: int, mutations: Mutations, path: Path) -> Reading:
    """Write file ``number`` to a path, load it, and return what happened."""
    content = mutations.make(number)
    path.write_bytes(content)
    before, error, message = _restart_peak(), "none", ""
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load(path)
    except Exception as raised:
        error, message = type(raised).__name__, str(raised)[:200]
    seconds = time.process_time() - started
    return Reading(number, len(content), error, message, seconds, _peak() - before)


def summary(readings: list[Reading]) -> str:
    """Return how many files were loaded or refused, and which took most."""
    errors = Counter(reading.error for reading in readings)
    slowest = max(readings, key=lambda reading: reading.seconds)
    largest = max(readings, key=lambda reading: reading.memory - TIMES * reading.size)
    return (
        f"{len(readings)} files: {dict(errors)}; the slowest is file {slowest.number}, {slowest.size} bytes, "
        f"{slowest.seconds:.2f} s; beyond {TIMES} times its size most memory took file {largest.number}, "
        f"{largest.size} bytes, {largest.memory / 2**20:.0f} MiB"
    )


def _restart_peak() -> int:
    """Let the kernel measure the peak of this process's memory anew, and return its memory now, in bytes."""
    _PEAK.write_text("5")
    return _peak()


def _peak() -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10
