"""Command ``python -m telegrad.testing.dist_graphs``: many random expressions; it exits with 1 if a gradient is wrong."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from . import processes, simulated

ABOUT = """Compare gradients of random expressions that are split over workers (every way to call, dense and sparse, results
that nothing needs, several passes) with those of the same expressions in one process, in float64, to 1e-9: on real processes,
in both modes of the backward, and in the simulator, with late and reordered messages and killed workers."""
EXPRESSIONS_A_RUN = 10  # about that many a run of the simulator
EVENTS = 3000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    options = parse(arguments)
    failed = False
    if options.on != "simulator":
        failed |= _on_processes(range(options.first, options.first + options.seeds), options.workers)
    if options.on != "processes":
        runs = max(options.seeds // EXPRESSIONS_A_RUN, 1)
        failed |= _in_simulator(range(options.first, options.first + runs), options.workers)
    return int(failed)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options on the command line."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.testing.dist_graphs", description=ABOUT)
    parser.add_argument("--seeds", type=_count, default=100, help="how many expressions (default %(default)s)")
    parser.add_argument("--workers", type=_count, default=4, help="how many workers (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed, to run one again")
    parser.add_argument("--on", choices=["processes", "simulator"], help="only these (default: both)")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"it must be at least 1; you gave {text}")
    return number


def _on_processes(seeds: range, workers: int) -> bool:
    started = time.perf_counter()
    count, problems = processes.check(seeds, workers)
    seconds = time.perf_counter() - started
    print(f"{count} expressions on {workers} processes, {seconds:.1f} s: {len(problems)} wrong", flush=True)
    for name, each in problems.items():
        print(f"{name}:", *each, sep="\n  ")
    return bool(problems)


def _in_simulator(seeds: range, workers: int) -> bool:
    started, complete, wrong = time.perf_counter(), 0, 0
    for seed, count, problems in simulated.check(seeds, max(workers, 2), EVENTS):
        complete += count
        wrong += bool(problems)
        if problems:
            print(f"simulator, seed {seed}:", *problems, sep="\n  ", flush=True)
    seconds = time.perf_counter() - started
    print(
        f"{complete} expressions in {len(seeds)} runs of the simulator, {seconds:.1f} s: {wrong} runs wrong", flush=True
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
