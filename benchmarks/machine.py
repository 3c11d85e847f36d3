"""Facts of the machine and of its load, which a reader needs to judge the figures."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

GIB = 1 << 30


def machine_facts() -> dict[str, str]:
    """Return processor, memory and system."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": f"{processor_name()}, {os.cpu_count()} cores",
        "memory": f"{pages / GIB:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
    }


def processor_name() -> str:
    """Return the processor's name from the kernel, else from Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def available_bytes() -> int:
    """Return the memory that new processes can have."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class Load:
    """Load of the machine during a run, without that of the run itself: runnable tasks are looked at between measurements."""

    def __init__(self) -> None:
        self._waiting: list[int] = []

    def note(self) -> None:
        """Note how many tasks of the machine run or want to, this one not counted. Nothing of the run itself is running now."""
        running = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
        self._waiting.append(int(running) - 1)

    def facts(self) -> str:
        """Return what was noted, in words."""
        if not self._waiting:
            return "not looked at"
        busy = sum(count > 0 for count in self._waiting) / len(self._waiting)
        return (
            f"{median(self._waiting):g} other tasks running (median); {busy:.0%} of {len(self._waiting)} looks not idle"
        )


@contextmanager
def run_facts(facts: dict[str, str]) -> Iterator[Load]:
    """Record in ``facts`` when the block ran, how long, and the load of the machine."""
    load, began = Load(), time.monotonic()
    facts["began"] = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    facts["load before"] = f"{os.getloadavg()[0]:.2f}"
    yield load
    facts["took"] = f"{time.monotonic() - began:.0f} s"
    facts["load"] = load.facts()
