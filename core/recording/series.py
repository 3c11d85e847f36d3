"""Series: the values that a program logged under one name, thinned so that it never holds more than ``MOST_POINTS``."""

from __future__ import annotations

import math
from typing import NamedTuple

MOST_POINTS = 256


class Point(NamedTuple):
    """Value of a series: at which step of the program, and when (seconds since the epoch)."""

    step: int
    value: float
    time: float


class Series:
    """Values of one name: the last one, and of all values every ``stride``-th.

    When ``MOST_POINTS`` are kept, every second of them is dropped and the stride doubles. Kept values are values that were
    logged, not means. One thread at a time calls ``add``; others may read.

    Attributes:
        count: how many values were logged.
        last: the last one; None if there is none.
        first_not_finite: the step of the first value that was no finite number; None if all were.
    """

    __slots__ = ("_points", "_stride", "count", "first_not_finite", "last")

    def __init__(self) -> None:
        self.count = 0
        self.last: Point | None = None
        self.first_not_finite: int | None = None
        self._points: list[Point] = []
        self._stride = 1

    def add(self, point: Point) -> None:
        """Add the next value."""
        if self.count % self._stride == 0:
            if len(self._points) == MOST_POINTS:
                self._points = self._points[::2]
                self._stride *= 2
            if self.count % self._stride == 0:
                self._points.append(point)
        if self.first_not_finite is None and not math.isfinite(point.value):
            self.first_not_finite = point.step
        self.count += 1
        self.last = point

    def points(self) -> list[Point]:
        """Return the kept values in the order in which they were logged, and the last one."""
        points, last = list(self._points), self.last
        return points if last is None or (points and points[-1] is last) else [*points, last]
