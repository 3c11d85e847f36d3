"""Rows of the live view, made of two observations of a worker, one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...base.printable import printable
from ..watching.texts import duration, size

if TYPE_CHECKING:
    from ...rpc.observing import Observation

BARS = "▁▂▃▄▅▆▇█"
CURVE_COLUMNS = 12
MOST_CURVES = 2
MOST_NAME = 24


@dataclass(frozen=True, slots=True)
class LiveRow:
    """Cells of one worker."""

    worker: str
    state: str
    host: str
    processor: str
    memory: str
    calls: str
    curves: str
    progress: str


def live_row(now: Observation, before: Observation | None, seconds: float) -> LiveRow:
    """Return the row of a worker.

    Args:
        now: what it does.
        before: what it did earlier; None at first.
        seconds: time between these two.
    """
    processor = calls = "-"
    if before is not None and seconds > 0 and not now.error and not before.error:
        processor = f"{max(now.cpu_seconds - before.cpu_seconds, 0.0) / seconds:.0%}"
        made = now.calls_made - before.calls_made + now.requests_accepted - before.requests_accepted
        calls = f"{max(made, 0) / seconds:,.0f}"
    memory = size(now.memory_bytes or None)
    cells = (now.worker, state_of_worker(now), now.host, processor, memory, calls, curves(now), progress(now))
    return LiveRow(*(printable(each, 80) for each in cells))


def state_of_worker(seen: Observation) -> str:
    """Return a worker's state in a few words."""
    if seen.error:
        return seen.process_state or "no answer"
    if seen.in_shutdown:
        return "shuts down"
    if requests := seen.totals.get("requests", 0):
        return f"serves {requests}"
    return "waits" if seen.totals.get("calls", 0) else "runs"


def curves(seen: Observation) -> str:
    """Return the series that were logged last, each with its last value and a small picture."""
    latest = sorted(seen.logged, key=lambda series: series.seconds)[:MOST_CURVES]
    texts = []
    for series in sorted(latest, key=lambda series: series.name):
        value = "not finite" if series.last is None else f"{series.last:.4g}"
        texts.append(f"{series.name[:MOST_NAME]} {value} {sparkline(series.values)}")
    return "  ".join(texts)


def sparkline(values: Sequence[float | None], width: int = CURVE_COLUMNS) -> str:
    """Return a picture of a curve, of one line: the mean of each part, between the least and the greatest; x where none is.

    Args:
        values: the values; None for one that is no finite number.
        width: most characters.
    """
    count = min(width, len(values))
    parts = [values[place * len(values) // count : (place + 1) * len(values) // count] for place in range(count)]
    means = [_mean([value for value in part if value is not None]) for part in parts]
    finite = [value for value in means if value is not None]
    least, most = min(finite, default=0.0), max(finite, default=0.0)
    return "".join("x" if value is None else _bar(value, least, most) for value in means)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(value / len(values) for value in values) if values else None


def _bar(value: float, least: float, most: float) -> str:
    span = most / 2 - least / 2  # halves: the difference of two large numbers may be infinite
    share = (value / 2 - least / 2) / span if span > 0 else 0.5
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]


def progress(seen: Observation) -> str:
    """Return how far the loop is that began last and runs; or else that ended last."""
    if not seen.loops:
        return ""
    loop = next((each for each in reversed(seen.loops) if not each.ended), seen.loops[-1])
    name = f"{loop.description[:MOST_NAME]} " if loop.description else ""
    if loop.total:
        share = f"{loop.done:,}/{loop.total:,} {min(loop.done / loop.total, 1.0):.0%}"
        left = (loop.total - loop.done) / loop.rate if loop.rate > 0 and not loop.ended else 0.0
        return f"{name}{share} {loop.rate:.3g}/s" + (f" {duration(left)} left" if left > 0 else "")
    return f"{name}{loop.done:,} {loop.rate:.3g}/s"
