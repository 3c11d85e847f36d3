"""Sums of a profile's calls by name, and a table of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .events import FunctionEvent

COLUMNS = ("name", "worker", "self CPU %", "self CPU", "CPU total", "CPU average", "calls", "memory", "shapes")
OPTIONAL = {COLUMNS.index(name) for name in ("worker", "memory", "shapes")}  # left out where they are empty
SORTS = {
    "self_cpu_time_total": "self_cpu_time_total",
    "cpu_time_total": "cpu_time_total",
    "cpu_time": "cpu_time",
    "count": "count",
    "cpu_memory_usage": "cpu_memory_usage",
}


@dataclass
class FunctionEventAvg:
    """Sums over all calls of one name on one worker: times in microseconds, memory in bytes."""

    key: str
    input_shapes: tuple[Any, ...] = ()
    node_id: int = -1
    worker: str = ""
    is_remote: bool = False
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0

    @property
    def cpu_time(self) -> float:
        """The mean time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0


class EventList(list[FunctionEventAvg]):
    """Sums by name."""

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """Return the sums as text.

        Args:
            sort_by: the column to sort by, largest first: "self_cpu_time_total", "cpu_time_total", "cpu_time", "count" or
                "cpu_memory_usage"; in order of first calls by default.
            row_limit: the maximum number of rows.

        Raises:
            ValueError: there is no such column.
        """
        return table(self, sort_by, row_limit)

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all calls' own times, in microseconds."""
        return sum(row.self_cpu_time_total for row in self)


def averages(events: Iterable[FunctionEvent], by_shape: bool, workers: Mapping[int, str] | None = None) -> EventList:
    """Return the sums of ``events`` by name and worker, or by name, worker and shapes.

    Args:
        events: the calls.
        by_shape: whether to keep different shapes apart.
        workers: names of workers by rank.
    """
    names = workers or {}
    rows: dict[Any, FunctionEventAvg] = {}
    for event in events:
        shapes = event.input_shapes if by_shape else ()
        worker = names.get(event.node_id, "")
        fresh = FunctionEventAvg(event.name, shapes, event.node_id, worker, event.is_remote)
        row = rows.setdefault((event.name, shapes, event.node_id), fresh)
        row.count += 1
        row.cpu_time_total += event.duration / 1000
        row.self_cpu_time_total += event.self_time / 1000
        row.cpu_memory_usage += event.memory
    return EventList(rows.values())


def table(rows: EventList, sort_by: str | None, row_limit: int) -> str:
    """Return the table of ``rows`` as text.

    Args:
        rows: the sums.
        sort_by: the column to sort by; see ``EventList.table``.
        row_limit: the maximum number of rows.

    Raises:
        ValueError: there is no such column.
    """
    if sort_by is not None and sort_by not in SORTS:
        raise ValueError(f"sort_by must be one of {', '.join(SORTS)}, and you gave {sort_by!r}")
    chosen = sorted(rows, key=lambda row: -getattr(row, sort_by)) if sort_by else list(rows)
    total = rows.self_cpu_time_total
    lines = [COLUMNS, *(_cells(row, total) for row in chosen[:row_limit])]
    used = [place for place in range(len(COLUMNS)) if place not in OPTIONAL or any(line[place] for line in lines[1:])]
    widths = {place: max(len(line[place]) for line in lines) for place in used}
    text = ["  ".join(_aligned(line[place], widths[place], place) for place in used).rstrip() for line in lines]
    rule = "  ".join("-" * widths[place] for place in used)
    return "\n".join([text[0], rule, *text[1:], rule, f"self CPU time in all: {_time(total)}"])


def _cells(row: FunctionEventAvg, total: float) -> tuple[str, ...]:
    share = 100 * row.self_cpu_time_total / total if total else 0.0
    times = (_time(value) for value in (row.self_cpu_time_total, row.cpu_time_total, row.cpu_time))
    memory = f"{row.cpu_memory_usage / 1024:.1f} KiB" if row.cpu_memory_usage else ""
    shapes = str(list(row.input_shapes)) if row.input_shapes else ""
    return (row.key, row.worker, f"{share:.1f}%", *times, str(row.count), memory, shapes)


def _aligned(cell: str, width: int, place: int) -> str:
    return cell.ljust(width) if place in (0, 1, len(COLUMNS) - 1) else cell.rjust(width)


def _time(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{microseconds:.1f} us"
    return f"{microseconds / 1000:.3f} ms" if microseconds < 1e6 else f"{microseconds / 1e6:.3f} s"
