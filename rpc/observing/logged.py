"""Observation of what a program logged: series of scalars, and positions of loops."""

from __future__ import annotations

import math
import time

from ...core.recording import MOST_POINTS, Loop, Series, loops, program_log
from .records import ObservedLoop, ObservedSeries

MOST_OBSERVED_POINTS = 20 * MOST_POINTS  # of all series: with more series, each shows fewer


def observe_series() -> list[ObservedSeries]:
    """Return the series of this process, in the order of their first values."""
    series = program_log().series()
    most = max(MOST_OBSERVED_POINTS // max(len(series), 1), 2)
    return [seen for name, each in series.items() if (seen := _series(name, each, most)) is not None]


def observe_loops() -> list[ObservedLoop]:
    """Return the loops of this process, the oldest first."""
    return [_loop(each) for each in loops()]


def _series(name: str, series: Series, most: int) -> ObservedSeries | None:
    points, last = series.points(), series.last
    if last is None:
        return None
    points = points[:: -(-len(points) // (most - 1))]
    if points[-1] is not last:
        points.append(last)
    seconds = max(time.time() - last.time, 0.0)
    steps, values = [each.step for each in points], [_finite(each.value) for each in points]
    return ObservedSeries(
        name, series.count, last.step, _finite(last.value), seconds, steps, values, series.first_not_finite
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _loop(loop: Loop) -> ObservedLoop:
    seconds = loop.seconds()
    rate = loop.done / seconds if seconds > 0 else 0.0
    return ObservedLoop(loop.description, loop.done, loop.total, seconds, rate, loop.ended is not None)
