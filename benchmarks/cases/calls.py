"""Cases of single calls: how long one takes, empty, with a payload, or to many workers at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .base import Case, Figures, Turn, echo, nothing, take_times, timed

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
FAN_OUT = 8


def measure_nothing(turn: Turn) -> Figures:
    """Measure an empty call."""
    call, peer = turn.library.call, turn.peer
    return take_times(timed(lambda: call(peer, nothing)), turn.seconds)


def measure_echo(size: int) -> Callable[[Turn], Figures]:
    """Return a measurement of a call that sends an array of ``size`` bytes and gets it back."""

    def measure(turn: Turn) -> Figures:
        array, call, peer = turn.library.array(size), turn.library.call, turn.peer

        def step() -> float:
            start = time.perf_counter()
            answer = call(peer, echo, array)
            elapsed = time.perf_counter() - start
            assert len(answer) == size
            return elapsed

        return take_times(step, turn.seconds)

    return measure


def measure_fan_out(turn: Turn) -> Figures:
    """Measure empty calls to all other workers at once, until all are answered."""
    return take_times(timed(lambda: fan_out(turn)), turn.seconds)


def fan_out(turn: Turn, function: Callable[[], Any] = nothing) -> list[Any]:
    """Call a function on every other worker, and return all answers."""
    waits = [turn.library.start_call(rank, function) for rank in range(1, turn.workers)]
    return [wait() for wait in waits]


def echo_of(size: int, name: str, quick: bool = False) -> Case:
    """Return the case of that size."""
    return Case(f"{name} echo", measure_echo(size), quick=quick)


CASES = (
    Case("no-op", measure_nothing, quick=True, more={"no-op, 99th percentile": "p99"}),
    echo_of(1, "1 B"),
    echo_of(KIB, "1 KiB", quick=True),
    echo_of(32 * KIB, "32 KiB"),
    echo_of(MIB, "1 MiB", quick=True),
    echo_of(16 * MIB, "16 MiB"),
    echo_of(64 * MIB, "64 MiB", quick=True),
    echo_of(256 * MIB, "256 MiB"),
    echo_of(GIB, "1 GiB"),
    Case(f"fan-out to {FAN_OUT}", measure_fan_out, workers=FAN_OUT + 1),
)
