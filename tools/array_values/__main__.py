"""Command ``python -m telegrad.tools.array_values``: many random objects; it exits with 1 if one arrives changed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from ..repeated import at_least_one
from . import copies, lanes
from .arrays import LIBRARIES

ABOUT = """Send random nested objects with arrays of NumPy, Telegrad, PyTorch, JAX and others (those that are installed) over
every lane, and compare what comes back: equal, of the same kinds, the same parts one object, the same memory shared, writable.
Then count the bytes that are copied to send and to open arrays of each library and layout: never more than for ours."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    options = parse(arguments)
    failed = False
    print("libraries:", *LIBRARIES)
    for lane in [options.on] if options.on else lanes.LANES:
        started = time.perf_counter()
        problems = lanes.check(lane, range(options.first, options.first + options.seeds))
        failed |= bool(problems)
        seconds = time.perf_counter() - started
        print(f"{options.seeds} objects over {lane}, {seconds:.1f} s: {len(problems)} wrong", flush=True)
        for name, each in problems.items():
            print(f"{name}:", *each, sep="\n  ")
    more = copies.check()
    print(f"copies of {len(copies.SIZES)} sizes in each layout: {len(more)} wrong", *more, sep="\n  ")
    return int(failed or bool(more))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options on the command line."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.array_values", description=ABOUT)
    parser.add_argument("--seeds", type=at_least_one, default=100, help="how many objects (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed, to run one again")
    parser.add_argument("--on", choices=[*lanes.LANES], help="only over this lane (default: over all)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
