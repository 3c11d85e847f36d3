"""Trace of a worker that was killed: what it noted last for its launcher; ``merge_traces`` joins it with those of others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..base.last_calls import PastCall
from ..base.last_events import PastEvent
from .profiler.chrome import clock_row, name_rows


def write_last_trace(
    path: str | os.PathLike[str],
    worker: str,
    rank: int,
    calls: Sequence[PastCall],
    events: Sequence[PastEvent],
    ended: int,
) -> None:
    """Write a trace of a worker's last calls and events. A call that had not ended goes on until the worker's end.

    Args:
        path: the file.
        worker: its name.
        rank: its rank.
        calls: the calls that it served last.
        events: what else it noted.
        ended: when it ended, in nanoseconds of ``time.perf_counter_ns``, which on Linux all processes of a machine share.

    Raises:
        OSError: it cannot be written.
    """
    began = min([ended, *(each.began for each in calls), *(_nanoseconds(each) for each in events)])
    rows = [*name_rows({rank: worker}), clock_row(rank, began), *_slices(rank, calls, began, ended)]
    rows += [
        {"name": each.text, "ph": "i", "s": "p", "ts": (_nanoseconds(each) - began) / 1000, "pid": rank, "tid": 0}
        for each in events
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file)


def _nanoseconds(event: PastEvent) -> int:
    return int(event.at * 1e9)  # monotonic and performance counter are one clock on Linux


def _slices(rank: int, calls: Sequence[PastCall], began: int, ended: int) -> Iterator[dict[str, Any]]:
    """Yield a slice for each call: asynchronous ones, as several threads serve calls, and these do not nest."""
    for number, call in enumerate(calls):
        row = {"name": f"{call.name}#remote_call", "cat": "async", "id": number, "pid": rank, "tid": 0}
        about = {"caller": call.caller, "call": call.call_id, "ended": call.ended is not None}
        yield {**row, "ph": "b", "ts": (call.began - began) / 1000, "args": about}
        yield {**row, "ph": "e", "ts": ((call.ended or max(ended, call.began)) - began) / 1000}
