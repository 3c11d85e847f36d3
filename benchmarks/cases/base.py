"""Case of the RPC benchmark: what it measures, in how large a job, and how a step's time or a rate is taken.

A case runs in the caller, rank 0; functions that it calls run on other workers. Both are in one module, so that both sides
import them under one name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..libraries import Library
from ..results import Row

WARM_UP = 0.2  # of the time of a turn
FEW = 5  # steps warm up, and as many are counted, if they take no longer than ``PATIENCE_S``
PATIENCE_S = 2.0
MOST_SAMPLES = 20_000

Figures = dict[str, float]


@dataclass(frozen=True)
class Figure:
    """One number that a case measures: its unit, and whether more of it is better."""

    unit: str
    more_is_better: bool = False


FIGURES = {
    "p50": Figure("s"),
    "p99": Figure("s"),
    "rate": Figure("1/s", more_is_better=True),
    "start": Figure("s"),
    "memory": Figure("B"),
    "own memory": Figure("B"),
}


@dataclass(frozen=True)
class Turn:
    """One measurement of a case, as a worker that takes part sees it.

    Attributes:
        library: the library under test.
        workers: size of the job.
        seconds: how long to measure, about.
        peer: the worker to call.
        begin: when all callers begin, on ``time.monotonic``.
        launched: when the job was launched.
        kept: what earlier turns of the case want to keep, such as a model.
    """

    library: Library
    workers: int
    seconds: float
    peer: int
    begin: float
    launched: float
    kept: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """Row of the table.

    Attributes:
        name: unique, and what users name it by.
        measure: takes one turn.
        figure: what the row of this name shows.
        more: further rows, and their figures. Figures without a row are in the file only.
        workers: size of the job.
        callers: how many workers measure at once, from rank 0 on; the table shows the sum of their rates.
        alone: the job is launched for this case, while no other job runs.
        quick: part of the short run.
    """

    name: str
    measure: Callable[[Turn], Figures]
    figure: str = "p50"
    workers: int = 2
    callers: int = 1
    alone: bool = False
    quick: bool = False
    more: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """Return the rows of the table."""
        return [Row(name, self.name, figure) for name, figure in {self.name: self.figure, **self.more}.items()]


def nothing() -> None:
    """Do nothing."""


def echo(value: Any) -> Any:
    """Return the argument."""
    return value


def take_times(step: Callable[[], float], seconds: float) -> Figures:
    """Return median and 99th percentile of the times that ``step`` returns, of as many steps as fit into ``seconds``.

    The steps before them are not counted: what idles for a minute gives its memory back, and large payloads come late to
    each round.
    """
    _repeat(step, WARM_UP * seconds)
    times = sorted(_repeat(step, seconds))
    return {"p50": times[len(times) // 2], "p99": times[int(len(times) * 0.99)], "samples": len(times)}


def timed(step: Callable[[], Any]) -> Callable[[], float]:
    """Return a function that returns how long ``step`` takes."""

    def run() -> float:
        start = time.perf_counter()
        step()
        return time.perf_counter() - start

    return run


def _repeat(step: Callable[[], float], seconds: float) -> list[float]:
    start, times = time.perf_counter(), list[float]()
    while not times or _goes_on(time.perf_counter() - start, seconds, len(times)):
        times.append(step())
    return times


def _goes_on(passed: float, seconds: float, steps: int) -> bool:
    return passed < (seconds if steps >= FEW else max(seconds, PATIENCE_S)) and steps < MOST_SAMPLES
