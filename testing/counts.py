"""Counts of what code costs: calls, thread switches, system calls, memory. Unlike times, they hardly depend on the machine.

Each is counted in a pass of its own, because a profile function causes switches, and a tracer system calls.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

Step = Callable[[], Any]
ATTACHED = "attached"
TRACER_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Counts:
    """Costs of one step, each the mean of many steps.

    Attributes:
        python_calls: calls of Python functions in the thread of the step, by name.
        c_calls: calls of C functions there, by name: ``sendmsg`` and ``acquire`` are among them.
        switches: how often a thread of this process gave up its core to wait.
        preemptions: how often the kernel took the core from one.
        blocks: blocks of Python's allocator that the step leaves allocated.
        peak_bytes: most memory that Python's allocator and NumPy held at once, above what they held before.
    """

    python_calls: Counter[str]
    c_calls: Counter[str]
    switches: float
    preemptions: float
    blocks: float
    peak_bytes: int


def count(step: Step, repeats: int = 100, warmup: int = 50) -> Counts:
    """Return what ``step`` costs once it is warm.

    Args:
        step: code to count; called without arguments.
        repeats: steps of each pass.
        warmup: steps before the first pass.

    Returns:
        The mean of one step's costs; calls are rounded to whole numbers, and those below a half left out.
    """
    for _ in range(warmup):
        step()
    switches, preemptions, blocks = _usage(step, repeats)
    python_calls, c_calls = _calls(step, repeats)
    return Counts(python_calls, c_calls, switches, preemptions, blocks, _peak(step))


def count_system_calls(step: Step, repeats: int = 100) -> Counter[str] | None:
    """Return the system calls of all threads of this process during ``step``, counted by ``strace``.

    The step gets slower, so that code which looks again and again until a time is over looks less often.

    Args:
        step: code to count; warm it up before.
        repeats: steps to count.

    Returns:
        System calls of one step by name, as in ``Counts``; None where ``strace`` is missing or may not trace this process.
    """
    with tempfile.NamedTemporaryFile("r") as table:
        tracer = _attach(table.name)
        if tracer is None:
            return None
        try:
            for _ in range(repeats):
                step()
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.communicate(timeout=TRACER_TIMEOUT_S)
        return _mean(Counter(dict(_rows(table))), repeats)


@contextlib.contextmanager
def lines_run() -> Iterator[Callable[[], int]]:
    """Count the lines of Python that this thread runs in the block, each turn of a comprehension included.

    Yields:
        Function that returns how many they were so far.
    """
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lambda: count
    finally:
        sys.settrace(before)


def _usage(step: Step, repeats: int) -> tuple[float, float, float]:
    before, blocks = resource.getrusage(resource.RUSAGE_SELF), sys.getallocatedblocks()
    for _ in range(repeats):
        step()
    after, left = resource.getrusage(resource.RUSAGE_SELF), sys.getallocatedblocks() - blocks
    switches, preemptions = after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw
    return switches / repeats, preemptions / repeats, left / repeats


def _calls(step: Step, repeats: int) -> tuple[Counter[str], Counter[str]]:
    python_calls: Counter[str] = Counter()
    c_calls: Counter[str] = Counter()

    def see(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            python_calls[f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"] += 1
        elif event == "c_call":
            c_calls[argument.__name__] += 1

    with _profile(see):
        for _ in range(repeats):
            step()
    return _mean(python_calls, repeats), _mean(c_calls, repeats)


@contextlib.contextmanager
def _profile(see: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(before)


def _peak(step: Step) -> int:
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not tracing:
            tracemalloc.stop()


def _mean(counts: Counter[str], repeats: int) -> Counter[str]:
    """Return the counts of one step; what happens in fewer than half of the steps is not part of it."""
    return Counter({name: mean for name, total in counts.items() if (mean := round(total / repeats))})


def _attach(file: str) -> subprocess.Popen[str] | None:
    """Start ``strace`` on this process, and return it when it has attached."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    command = [strace, "-f", "-c", "-U", "name,calls", "-o", file, "-p", str(os.getpid())]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    for line in tracer.stderr:
        if ATTACHED in line:
            return tracer
    tracer.communicate()
    return None


def _rows(table: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Return (system call, how often) of the table that ``strace -c`` writes."""
    for line in table:
        if (row := re.fullmatch(r"(\w+)\s+(\d+)\s*", line)) and row[1] != "total":
            yield row[1], int(row[2])
