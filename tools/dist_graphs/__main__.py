"""Command ``python -m telegrad.tools.dist_graphs``: many random expressions; it exits with 1 if a gradient is wrong."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from .. import repeated
from ..repeated import at_least_one
from . import processes, simulated
from .captured import run
from .exact import is_exact
from .job import LANES
from .plan import make_plan
from .trainings import run as trainings

ABOUT = """Compare gradients of random expressions that are split over workers (every way to call, dense and sparse, results
that nothing needs, several passes) with those of the same expressions in one process, in float64, to 1e-9: on real processes,
in both modes of the backward, and in the simulator, with late and reordered messages and killed workers. With --captured:
random steps, compiled, on real processes, compared with eager ones bit by bit. With --trainings: random trainings of models on
a mesh with a DistributedOptimizer: losses, gradients and parameters after each step."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    options = parse(arguments)
    if options.captured:
        return _captured(range(options.first, options.first + options.seeds), options.workers, options.lane)
    if options.trainings:
        return int(_trainings(options))
    failed = False
    if options.on != "simulator":
        seeds = range(options.first, options.first + options.seeds)
        failed |= _on_processes(seeds, options.workers, options.library, options.lane)
    if options.on != "processes" and options.library == "telegrad":
        failed |= repeated.report(simulated.Graphs, options.first, options.seeds, options.workers, "expressions")
    return int(failed)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options on the command line."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.dist_graphs", description=ABOUT)
    parser.add_argument("--seeds", type=at_least_one, default=100, help="how many expressions (default %(default)s)")
    parser.add_argument("--workers", type=at_least_one, default=4, help="how many workers (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed, to run one again")
    parser.add_argument("--on", choices=["processes", "simulator"], help="only these (default: both)")
    about = "of the tensors: torch needs PyTorch, mixed needs JAX, too; both have no simulator (default %(default)s)"
    parser.add_argument("--library", choices=["telegrad", "torch", "mixed"], default="telegrad", help=about)
    parser.add_argument("--captured", action="store_true", help="random steps, eagerly and compiled, on processes only")
    parser.add_argument("--trainings", action="store_true", help="random trainings of models on a mesh")
    about = "of processes (default: the usual choice; with --captured and --trainings one after the other)"
    parser.add_argument("--lane", choices=[*LANES], help=about)
    return parser.parse_args(arguments)


def _captured(seeds: range, workers: int, lane: str | None) -> int:
    wrong = 0
    for each in [lane] if lane else LANES:
        started = time.perf_counter()
        report = run.run_on_processes(each, seeds, max(workers, 2))
        seconds = time.perf_counter() - started
        print(
            f"{len(seeds)} programs on {workers} processes, {each}, {seconds:.1f} s:",
            *report.lines(),
            sep="\n",
            flush=True,
        )
        wrong += len(report.problems)
    return int(wrong > 0)


def _trainings(options: argparse.Namespace) -> bool:
    failed, seeds = False, range(options.first, options.first + options.seeds)
    for lane in () if options.on == "simulator" else [options.lane] if options.lane else LANES:
        started = time.perf_counter()
        problems = trainings.train_on_processes(lane, seeds, options.workers)
        took = f"{time.perf_counter() - started:.1f} s"
        print(
            f"{len(seeds)} trainings on {options.workers} processes, {lane}, {took}: {len(problems)} wrong", flush=True
        )
        for seed, each in problems.items():
            print(f"seed {seed}:", *each, sep="\n  ")
        failed |= bool(problems)
    if options.on != "processes":
        failed |= repeated.report(trainings.Trainings, options.first, options.seeds, options.workers, "trainings")
    return failed


def _on_processes(seeds: range, workers: int, library: str, lane: str | None) -> bool:
    started = time.perf_counter()
    count, problems = processes.check(seeds, workers, library, LANES[lane] if lane else None)
    seconds = time.perf_counter() - started
    plans = [
        make_plan(seed, workers, mode, blocking=True, library=library) for seed in seeds for mode in processes.MODES
    ]
    exact = sum(map(is_exact, plans))
    over = f" over {lane}" if lane else ""
    print(
        f"{count} expressions on {workers} processes{over}, {exact} of them bit by bit, {seconds:.1f} s: {len(problems)} wrong",
        flush=True,
    )
    for name, each in problems.items():
        print(f"{name}:", *each, sep="\n  ")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
