"""Command ``python -m telegrad.tools.rpc_programs``: many random programs; it exits with 1 if a result is wrong."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from ..repeated import at_least_one, report
from . import lanes, simulated

ABOUT = """Compare results of random programs with those that one process computes: calls in every way, references (made,
passed on, returned, stored in objects, dropped), async functions, streams and failures. On agents in this process and on
real processes over each lane, and in the simulator, with late and reordered messages, cut links and killed workers. In the
end no worker may hold a reference."""
SIMULATOR = "simulator"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    options = parse(arguments)
    chosen = [options.on] if options.on else [*lanes.LANES, SIMULATOR]
    failed = False
    for lane in [each for each in chosen if each != SIMULATOR]:
        failed |= _over(lane, range(options.first, options.first + options.seeds), options.workers)
    if SIMULATOR in chosen:
        failed |= report(simulated.Programs, options.first, options.seeds, options.workers, "programs")
    return int(failed)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options on the command line."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.rpc_programs", description=ABOUT)
    parser.add_argument("--seeds", type=at_least_one, default=100, help="how many programs (default %(default)s)")
    parser.add_argument("--workers", type=at_least_one, default=4, help="how many workers (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed, to run one again")
    parser.add_argument("--on", choices=[*lanes.LANES, SIMULATOR], help="only there (default: everywhere)")
    return parser.parse_args(arguments)


def _over(lane: str, seeds: range, workers: int) -> bool:
    started = time.perf_counter()
    problems = lanes.check(lane, seeds, workers)
    seconds = time.perf_counter() - started
    print(f"{len(seeds)} programs over {lane}, {workers} workers, {seconds:.1f} s: {len(problems)} wrong", flush=True)
    for name, each in problems.items():
        print(f"{name}:", *each, sep="\n  ")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
