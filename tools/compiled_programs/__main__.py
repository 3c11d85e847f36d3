"""Command ``python -m telegrad.tools.compiled_programs``: many random programs; it exits with 1 if a result is wrong."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

from ..repeated import at_least_one
from .program import Outcome, check
from .tiny import tiny_limits
from .written import check_written

ABOUT = """Compare the results, gradients and parameters of random programs, with shapes and branches that change, run eagerly
and compiled: bit by bit."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.compiled_programs", description=ABOUT)
    parser.add_argument("--seeds", type=at_least_one, default=1000, help="how many programs (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed, to run one again")
    parser.add_argument("--tiny", action="store_true", help="plan their small arrays as if they were large ones")
    parser.add_argument("--branches", action="store_true", help="let most programs look at elements, and branch")
    parser.add_argument(
        "--texts", action="store_true", help="make programs of random statements, over objects that change"
    )
    options = parser.parse_args(arguments)
    one = check_written if options.texts else partial(check, branches=options.branches)
    with tiny_limits() if options.tiny else nullcontext():
        return _check_all(range(options.first, options.first + options.seeds), one)


def _check_all(seeds: range, check_one: Callable[[int], Outcome]) -> int:
    counts: Counter[str] = Counter()
    for seed in seeds:
        outcome = check_one(seed)
        counts["replayed" if outcome.replays else "eager"] += 1
        counts["wrong"] += outcome.problem is not None
        if outcome.problem is not None:
            print(f"seed {seed}: {outcome.problem}", flush=True)
    print(f"{len(seeds)} programs: {counts['replayed']} replayed, {counts['eager']} eager, {counts['wrong']} wrong")
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
