"""Cases of many calls: how many a second, from one thread, from many, and between four pairs of workers at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from statistics import median

from .base import Case, Figures, Turn, nothing

BURST = 10_000
FEWEST_BURSTS = 3  # of a turn: the first wakes both ends
PAIRS = 4


def measure_burst(turn: Turn) -> Figures:
    """Measure empty calls that are made at once and then waited for."""
    rates, end = list[float](), time.perf_counter() + turn.seconds
    while len(rates) < FEWEST_BURSTS or time.perf_counter() < end:
        start = time.perf_counter()
        for wait in [turn.library.start_call(turn.peer, nothing) for _ in range(BURST)]:
            wait()
        rates.append(BURST / (time.perf_counter() - start))
    return {"rate": median(rates)}


def measure_threads(count: int) -> Callable[[Turn], Figures]:
    """Return a measurement of empty calls from ``count`` threads, each waiting for its own."""

    def measure(turn: Turn) -> Figures:
        calls: list[int] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                calls.append(count_calls(turn, begin, end))
            except BaseException as error:  # raised again below
                errors.append(error)

        begin = time.monotonic() + 0.05 + 0.002 * count
        end = begin + turn.seconds
        threads = [threading.Thread(target=copy_context().run, args=(work,)) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return {"rate": sum(calls) / turn.seconds}

    return measure


def measure_pairs(turn: Turn) -> Figures:
    """Measure one pair's empty calls; all pairs begin and end at the same times."""
    return {"rate": count_calls(turn, turn.begin, turn.begin + turn.seconds) / turn.seconds}


def count_calls(turn: Turn, begin: float, end: float) -> int:
    """Return how many empty calls are answered between these times, at least one; those before ``begin`` warm up."""
    call, peer, now, count = turn.library.call, turn.peer, time.monotonic, 0
    while now() < begin:
        call(peer, nothing)
    while count == 0 or now() < end:
        call(peer, nothing)
        count += 1
    return count


CASES = (
    Case(f"burst of {BURST:,} no-ops", measure_burst, "rate", quick=True),
    *(
        Case(f"{count} calling thread{'s'[: count > 1]}", measure_threads(count), "rate")
        for count in (1, 2, 4, 8, 16, 32, 64)
    ),
    Case(f"{PAIRS} pairs at once", measure_pairs, "rate", workers=2 * PAIRS, callers=PAIRS),
)
