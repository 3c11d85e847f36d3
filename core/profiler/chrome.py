"""Traces for chrome://tracing and Perfetto: a list of events, as PyTorch writes it, with a process for each worker.

The format is the "Trace Event Format" of Chromium. Calls that end in another thread, or while their thread does other things,
are asynchronous slices there; a blocking call is a slice of its thread, with an arrow to what the callee ran for it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .events import FunctionEvent, MemoryEvent

CLOCK_ROW = "telegrad_clock"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def write_trace(
    path: str | os.PathLike[str],
    events: Sequence[FunctionEvent],
    memory: Sequence[MemoryEvent],
    workers: Mapping[int, str],
    here: int,
    began: int,
) -> None:
    """Write a trace.

    Args:
        path: the file.
        events: the calls of all workers.
        memory: changes of this process's tensor memory.
        workers: names of workers by rank.
        here: rank of this worker; -1 for none.
        began: when the times of the events begin, in the nanoseconds of ``time.perf_counter_ns``.
    """
    rows = [
        *name_rows(workers),
        clock_row(_process(here), began),
        *_slices(events),
        *_arrows(events),
        *_counters(memory, _process(here)),
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file)


def short_name(event: FunctionEvent) -> str:
    """Return the part of an event's name that says what happened at its worker: without the calls that led there."""
    return event.name.rpartition("#remote_op: ")[2]


def name_rows(workers: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """Yield rows that name the processes of workers, by rank, and put them in order."""
    for rank, name in sorted(workers.items()):
        yield {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"{name} (rank {rank})"}}
        yield {"name": "process_sort_index", "ph": "M", "pid": rank, "args": {"sort_index": rank}}


def clock_row(process: int, began: int) -> dict[str, Any]:
    """Return a row that says when the trace began, on the clock that processes of one machine share, and by the wall clock."""
    wall = time.time_ns() - (time.perf_counter_ns() - began)
    return {"name": CLOCK_ROW, "ph": "M", "pid": process, "args": {"boot": _boot(), "began": began, "wall": wall}}


def _boot() -> str:
    """Return an id of this machine and its last start; empty if the system has none."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _slices(events: Sequence[FunctionEvent]) -> Iterator[dict[str, Any]]:
    for number, event in enumerate(events):
        row = {
            "name": short_name(event),
            "cat": "backward" if event.backward else "async" if event.is_async else "forward",
            "ts": event.start / 1000,
            **_place(event),
            "args": {"shapes": str(event.input_shapes), "memory": event.memory, "full name": event.name},
        }
        if event.is_async and not event.blocking:
            yield {**row, "ph": "b", "id": number}
            yield {**row, "ph": "e", "id": number, "ts": (event.start + event.duration) / 1000}
        else:
            yield {**row, "ph": "X", "dur": event.duration / 1000}


def _arrows(events: Sequence[FunctionEvent]) -> Iterator[dict[str, Any]]:
    """Yield an arrow from each call to what its callee ran; that of an asynchronous one begins in the slice that made it."""
    for number, event in enumerate(events):
        maker = event if event.blocking else event.cpu_parent
        if maker is not None and (event.blocking or (event.is_async and maker.thread == event.thread)):
            for child in event.cpu_children:
                if child.is_remote and not child.is_async and (event.blocking or child.node_id != event.node_id):
                    row = {"name": "call", "cat": "call", "id": number}
                    yield {**row, "ph": "s", "ts": event.start / 1000, **_place(event)}
                    yield {**row, "ph": "f", "bp": "e", "ts": child.start / 1000, **_place(child)}


def _counters(memory: Sequence[MemoryEvent], process: int) -> Iterator[dict[str, Any]]:
    total = 0
    for change in sorted(memory, key=lambda change: change.time):
        total += change.size
        yield {
            "name": "tensor memory",
            "ph": "C",
            "ts": change.time / 1000,
            "pid": process,
            "args": {"bytes": total},
        }


def _place(event: FunctionEvent) -> dict[str, int]:
    return {"pid": _process(event.node_id), "tid": event.thread}


def _process(rank: int) -> int:
    return rank if rank >= 0 else os.getpid()
