"""Benchmark of distributed training steps: ``python -m telegrad.benchmarks.steps --steps 200000``.

The last steps must cost what the first ones did, in time and in memory: nothing of a context may stay when it has ended.
A step is one context with a forward through the other worker and a backward. The table shows, for every tenth part of the
run, the median time of a step, the processor time that both processes spent on it, and their memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import autograd_dist, launcher, rpc
from ..core import Tensor, ones, rand, tanh

PARTS = 200
SHOWN = 20  # of these parts
WARM_UP = 200


class Layer:
    """Layer with a parameter, whose forward the other worker calls."""

    def __init__(self) -> None:
        self.weight = ones(8, 8).requires_grad_()

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        return tanh(x @ self.weight)


class Usage(NamedTuple):
    """Usage of a process: its processor time so far, its memory, and what its contexts left."""

    seconds: float
    mebibytes: float
    contexts: int


class Row(NamedTuple):
    """Row of the table: one part of the run."""

    steps: int
    wall: float  # seconds of a step, the median
    busy: float  # processor seconds of a step, of both processes
    mebibytes: tuple[float, float]


def usage() -> Usage:
    """Return the usage of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    return Usage(time.process_time(), pages * os.sysconf("SC_PAGE_SIZE") / 2**20, rpc.debug_info()["contexts"])


def measure(steps: int, step: Any) -> Row:
    """Run that many steps and return their measurements, without ``Row.steps``."""
    before = usage(), rpc.rpc_sync("w1", usage)
    times = []
    for _ in range(steps):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    after = usage(), rpc.rpc_sync("w1", usage)
    busy = sum(late.seconds - early.seconds for early, late in zip(before, after)) / steps
    return Row(0, statistics.median(times), busy, (after[0].mebibytes, after[1].mebibytes))


def train(steps: int) -> list[Row]:
    """Run the steps on worker 0, in parts, and print a row for each."""
    mine, theirs = Layer(), rpc.remote("w1", Layer)
    x = rand(4, 8)

    def step() -> None:
        with autograd_dist.context() as context:
            loss = theirs.rpc_sync().forward(mine.forward(x)).sum()
            autograd_dist.backward(context, [loss])

    for _ in range(WARM_UP):
        step()
    print(f"{'steps':>9} {'ms a step':>10} {'busy ms':>8} {'MiB w0':>8} {'MiB w1':>8}", flush=True)
    rows = []
    for part in range(1, PARTS + 1):
        row = measure(steps // PARTS, step)._replace(steps=part * (steps // PARTS))
        rows.append(row)
        if part > 1 and part % (PARTS // SHOWN):
            continue
        print(
            f"{row.steps:9} {row.wall * 1e3:10.3f} {row.busy * 1e3:8.3f} {row.mebibytes[0]:8.1f} {row.mebibytes[1]:8.1f}",
            flush=True,
        )
    return rows


def compare(first: Row, last: Row, steps: int) -> str:
    """Print the last part beside the first one."""
    grown = [late - early for early, late in zip(first.mebibytes, last.mebibytes)]
    return (
        f"last {steps} steps / first {steps}: {last.wall / first.wall:.2f} in time, {last.busy / first.busy:.2f} in "
        f"processor time, {grown[0]:+.1f} and {grown[1]:+.1f} MiB"
    )


def work(rank: int, steps: int) -> None:
    """Run one worker."""
    rpc.init_rpc(f"w{rank}")
    if rank == 0:
        rows = train(steps)
        print(compare(rows[0], rows[-1], steps // PARTS), flush=True)
    rpc.shutdown()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both workers."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.benchmarks.steps", description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20_000, help=f"how many, at least {PARTS} (default: 20000)")
    options = parser.parse_args(arguments)
    if options.steps < PARTS:
        parser.error(f"--steps must be at least {PARTS}; you gave {options.steps}")
    launcher.spawn(work, (options.steps,), nprocs=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
