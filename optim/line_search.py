"""Line search: find a step along a direction of descent that meets the strong Wolfe conditions.

Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6, with the cubic interpolation of equation 3.59.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..core.extend import Array


class Point(NamedTuple):
    """Point of the line, with the loss and its derivatives."""

    step: float
    loss: float
    grad: Array
    slope: float  # of the loss along the direction


Look = Callable[[float], Point]

SUFFICIENT, CURVED = 1e-4, 0.9  # c1 and c2: the decrease of the loss and the decrease of its slope that are sufficient


def strong_wolfe(
    look: Look, start: Point, step: float, reach: float, tolerance: float, searches: int
) -> tuple[Point, int]:
    """Return a point that meets the conditions, or the best one found, and the number of points evaluated.

    Args:
        look: evaluates the loss at a step.
        start: the point of step 0.
        step: the first step to try.
        reach: the largest component of the direction.
        tolerance: brackets in which no parameter changes by more than this are not searched.
        searches: largest number of points to evaluate after the first.
    """
    bracket, done, looked = _bracket(look, start, step, searches)
    if not done:
        bracket, looked = _zoom(look, start, bracket, looked, reach, tolerance, searches)
    return min(bracket, key=lambda point: point.loss), looked


def _bracket(look: Look, start: Point, step: float, searches: int) -> tuple[list[Point], bool, int]:
    """Increase the step until a point that meets the conditions lies between the last two, or the last one meets them."""
    former, point = start, look(step)
    for searched in range(searches):
        if _too_high(point, start) or (searched > 1 and point.loss >= former.loss):
            return [former, point], False, searched + 1
        if abs(point.slope) <= -CURVED * start.slope:
            return [point], True, searched + 1
        if point.slope >= 0:
            return [former, point], False, searched + 1
        bounds = (point.step + 0.01 * (point.step - former.step), point.step * 10)
        former, point = point, look(_cubic_minimum(former, point, bounds))
    return [start, point], False, searches + 1


def _zoom(
    look: Look, start: Point, bracket: list[Point], looked: int, reach: float, tolerance: float, searches: int
) -> tuple[list[Point], int]:
    """Narrow the bracket until one end meets the conditions. The ends keep their order: the cubic is not quite symmetric."""
    stuck = False
    while looked <= searches and abs(bracket[1].step - bracket[0].step) * reach >= tolerance:
        step, stuck = _inside(bracket, stuck)
        point = look(step)
        looked += 1
        low = 0 if bracket[0].loss <= bracket[1].loss else 1
        if _too_high(point, start) or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            continue
        if abs(point.slope) <= -CURVED * start.slope:
            return [point], looked
        if point.slope * (bracket[1 - low].step - bracket[low].step) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    return bracket, looked


def _too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + SUFFICIENT * point.step * start.slope


def _inside(bracket: list[Point], stuck: bool) -> tuple[float, bool]:
    """Return the next step within a bracket, away from its ends if the last one was near an end too."""
    first, last = sorted(point.step for point in bracket)
    step = _cubic_minimum(bracket[0], bracket[1], (first, last))
    margin = 0.1 * (last - first)
    if min(last - step, step - first) >= margin:
        return step, False
    if stuck or step >= last or step <= first:
        return (last - margin if abs(step - last) < abs(step - first) else first + margin), False
    return step, True


def _cubic_minimum(a: Point, b: Point, bounds: tuple[float, float]) -> float:
    """Return the minimum of the cubic through two points with their slopes, within ``bounds``."""
    one, other = (a, b) if a.step <= b.step else (b, a)
    d1 = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.step - other.step)
    square = d1 * d1 - one.slope * other.slope
    if not square >= 0:
        return (bounds[0] + bounds[1]) / 2
    d2 = math.sqrt(square)
    share = (other.slope + d2 - d1) / (other.slope - one.slope + 2 * d2)
    return float(np.clip(other.step - (other.step - one.step) * share, *bounds))
