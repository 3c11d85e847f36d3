"""Troubles that a worker makes for itself when asked to: no descriptors, no memory, a held GIL, forked children."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SPARE_DESCRIPTORS = 64
SPARE_BYTES = 16 << 20
CHILD_SECONDS = 30.0
ORPHAN_SECONDS = 300.0


def hold_gil(seconds: float) -> dict[str, Any]:
    """Keep every thread of this process from running Python."""
    usleep = ctypes.PyDLL(None).usleep  # PyDLL does not release the GIL
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:  # a signal ends it early
        usleep(int(left * 1e6))
    return {}


def exhaust_descriptors(seconds: float) -> dict[str, Any]:
    """Take every descriptor that this process may have."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(highest + SPARE_DESCRIPTORS, limits[1]), limits[1]))
    taken: list[int] = []
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                time.sleep(0.01)  # one may be freed meanwhile
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    return {"taken": len(taken)}


def exhaust_memory(seconds: float) -> dict[str, Any]:
    """Let this process have almost no more memory than it has; it may die of that."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    try:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + SPARE_BYTES, limits[1]))
        time.sleep(seconds)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    return {}


def fork_children(seconds: float) -> dict[str, Any]:
    """Fork in each of Python's ways during the calls of other threads, and return the exit code of every child."""
    ways = {"os.fork": _fork_plainly, "preexec_fn": _fork_and_execute, "multiprocessing": _fork_by_multiprocessing}
    codes: dict[str, list[int]] = {way: [] for way in ways}
    until = time.monotonic() + seconds
    while not codes["multiprocessing"] or time.monotonic() < until:
        for way, fork in ways.items():
            codes[way].append(fork())
    return {"codes": codes}


def leave_orphan(seconds: float) -> dict[str, Any]:
    """Fork a child that only sleeps, and return its process id: it keeps the descriptors that it inherits."""
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(silence, number)
        time.sleep(ORPHAN_SECONDS)
        os._exit(0)
    return {"child": child}


TROUBLES: dict[str, Callable[[float], dict[str, Any]]] = {
    "hold_gil": hold_gil,
    "exhaust_descriptors": exhaust_descriptors,
    "exhaust_memory": exhaust_memory,
    "fork_children": fork_children,
    "leave_orphan": leave_orphan,
}


def _fork_plainly() -> int:
    child = os.fork()
    if child == 0:
        _live_briefly()
        sys.stdout = sys.stderr = None
        os._exit(0)
    return _wait(child)


def _wait(child: int) -> int:
    until = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -9


def _fork_and_execute() -> int:
    return subprocess.call(["true"], preexec_fn=_live_briefly, timeout=CHILD_SECONDS)


def _fork_by_multiprocessing() -> int:
    process = multiprocessing.get_context("fork").Process(target=_live_briefly)
    process.start()
    process.join(CHILD_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
    code = process.exitcode
    process.close()
    return -9 if code is None else code


def _live_briefly() -> None:
    gc.collect()
