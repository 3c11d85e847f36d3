"""One trace of several: each worker of a job writes its own, and ``merge_traces`` joins them on one clock."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from .chrome import CLOCK_ROW

Rows = list[dict[str, Any]]
MOST_ARROWS = 1 << 32  # of one trace
CLOCK = {"boot": str, "began": int, "wall": int}


def merge_traces(paths: Iterable[str | os.PathLike[str]], path: str | os.PathLike[str]) -> None:
    """Write one trace, for chrome://tracing and Perfetto, of several that ``export_chrome_trace`` has written.

    The time of all of them begins with the first event's. Traces of one machine have one clock. Those of other machines are
    placed by the machines' wall clocks, so they are as exact as these.

    Args:
        paths: the traces.
        path: the file to write; it may be one of them.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: there is none; or a file is no such trace, or an older version wrote it, without its clock.
    """
    traces = [(str(each), _read(each)) for each in paths]
    if not traces:
        raise ValueError("merge_traces() got no trace: give the paths that export_chrome_trace() has written")
    clocks = [_clock(name, rows) for name, rows in traces]
    one_machine = len({clock["boot"] for clock in clocks}) == 1 and clocks[0]["boot"]
    begins = [clock["began" if one_machine else "wall"] for clock in clocks]
    merged = [
        _moved(row, number, (began - min(begins)) / 1000)
        for number, ((_, rows), began) in enumerate(zip(traces, begins))
        for row in rows
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(merged, file)


def _read(path: str | os.PathLike[str]) -> Rows:
    with open(path, encoding="utf-8") as file:
        try:
            rows = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{os.fspath(path)} is no trace: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{os.fspath(path)} is no trace of export_chrome_trace(): it must be a list of events")
    return rows


def _clock(name: str, rows: Rows) -> dict[str, Any]:
    clocks = [row.get("args") for row in rows if row.get("name") == CLOCK_ROW]
    for clock in clocks:
        if isinstance(clock, dict) and {key: type(clock.get(key)) for key in CLOCK} == CLOCK:
            return clock
    raise ValueError(f"{name} does not say when it began: write it again with this version's export_chrome_trace()")


def _moved(row: dict[str, Any], trace: int, later: float) -> dict[str, Any]:
    moved = dict(row)
    if isinstance(row.get("ts"), (int, float)):
        moved["ts"] = row["ts"] + later
    if isinstance(row.get("id"), int):
        moved["id"] = trace * MOST_ARROWS + row["id"]  # one id in two traces would be one call
    return moved
