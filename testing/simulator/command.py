"""Command of the simulator: it runs one seed after the other, shows progress and a table, and how to replay failures."""

from __future__ import annotations

import argparse
import importlib
import time
from collections import Counter
from collections.abc import Callable, Sequence

from .faults import ALL_KINDS, FaultPlan
from .mixed import Mixed
from .simulation import LONGEST_FAULT_SECONDS, Result, Simulation
from .workload import Workload

ABOUT = """\
Run real agents on one thread, with a simulated clock and network, under faults drawn from a seed: frames that are late,
repeated, reordered or dropped (the last three where the control channel must survive them), connections that break, links
that are cut one by one or between two groups, processes that are stopped, killed or slow, windows of one message. With
--restarts killed processes are started again, also during shutdown, workers leave and others take their places, calls with
retry= wait for them, and all go on from checkpoints, with exactly-once calls. After
every run it checks that each call ran at most once and ended by name, that each exactly-once call was applied once and a
checkpoint has it, that references were neither freed too early nor leaked, that gradients and compiled steps are those
of one process, that all workers agree about who is lost and none was that could reach the majority, that every table
is empty, and that nothing hangs. The exit code is 1 if anything is wrong.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    options = _parser().parse_args(arguments)
    make = _workload(options.workload)
    seeds = [options.seed] if options.seed is not None else range(options.seeds)
    print(_head(), flush=True)
    results: list[Result] = []
    begun = time.perf_counter()
    for seed in seeds:
        started = time.perf_counter()
        plan = FaultPlan.drawn(seed, options.longest)
        results.append(Simulation(seed, options.agents, options.events, make(), plan, restarts=options.restarts).run())
        print(_row(str(seed), [results[-1]], time.perf_counter() - started), flush=True)
        _explain(results[-1], options)
    print(_row("all", results, time.perf_counter() - begun))
    print(_work(results))
    wrong = [result.seed for result in results if result.violations]
    print(f"{len(wrong)} of {len(results)} seeds found a violation" + (f": {wrong}" if wrong else ""))
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m telegrad.testing.simulate",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--agents", type=_at_least(2), default=8, help="how many workers (default 8)")
    parser.add_argument("--events", type=_at_least(1), default=10_000, help="events of each seed (default 10000)")
    parser.add_argument("--seeds", type=_at_least(1), default=10, help="run the seeds 0 to SEEDS - 1 (default 10)")
    parser.add_argument("--seed", type=int, help="run this seed alone: replays it exactly")
    parser.add_argument(
        "--longest",
        type=float,
        default=LONGEST_FAULT_SECONDS,
        help="simulated seconds that a cut, a stop or slowness lasts at most (default %(default)s)",
    )
    parser.add_argument(
        "--restarts", action="store_true", help="start killed workers again; they take their places in the job"
    )
    parser.add_argument(
        "--workload", metavar="MODULE:CLASS", help="a Workload of your own (default: everything that telegrad offers)"
    )
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"it must be at least {least}; you gave {value}")
        return value

    return number


def _workload(name: str | None) -> Callable[[], Workload]:
    if name is None:
        return Mixed
    module, _, attribute = name.partition(":")
    kind: Callable[[], Workload] = getattr(importlib.import_module(module), attribute)
    return kind


def _head() -> str:
    columns = ["seed", "events", "simulated", "took", *ALL_KINDS, "violations"]
    return " ".join(f"{column:>9}" for column in columns)


def _row(name: str, results: Sequence[Result], took: float) -> str:
    faults: Counter[str] = Counter()
    for result in results:
        faults.update(result.faults)
    events, seconds = sum(result.events for result in results), sum(result.seconds for result in results)
    columns = [name, f"{events}", f"{seconds:.0f} s", f"{took:.1f} s", *(f"{faults[kind]}" for kind in ALL_KINDS)]
    columns.append(f"{sum(len(result.violations) for result in results)}")
    return " ".join(f"{column:>9}" for column in columns)


def _work(results: Sequence[Result]) -> str:
    work: Counter[str] = Counter()
    for result in results:
        work.update(result.work)
    return ", ".join(f"{count} {name}" for name, count in work.items())


def _explain(result: Result, options: argparse.Namespace) -> None:
    if not result.violations:
        return
    print("\nthe last events before the first violation:", *result.last, sep="\n  ")
    print(f"\nseed {result.seed} violates:", *result.violations, sep="\n  ")
    own = " --restarts" * options.restarts + (f" --workload {options.workload}" if options.workload else "")
    print(
        f"\nto replay: python -m telegrad.testing.simulate --seed {result.seed} --agents {options.agents} "
        f"--events {options.events} --longest {options.longest:g}{own}\n",
        flush=True,
    )
