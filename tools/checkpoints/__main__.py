"""Command ``python -m telegrad.tools.checkpoints``: many mutated checkpoints; it exits with 1 if a load goes wrong."""

from __future__ import annotations

import argparse
import faulthandler
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..repeated import at_least_one
from . import reading
from .mutation import Mutations

ABOUT = f"""Load checkpoints that were damaged, or made to do harm, of every form that telegrad.load() reads. It may only
raise CheckpointError, and take at most {reading.SECONDS:g} s of CPU and {reading.TIMES} times a file's size and
{reading.ALLOWANCE >> 20} MiB of memory."""
_EVERY = 1000  # files after which it says how far it is


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.checkpoints", description=ABOUT)
    parser.add_argument("--files", type=at_least_one, default=20_000, help="how many (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER", help="number of the first file")
    options = parser.parse_args(arguments)
    mutations, readings, failed = Mutations(), [], False
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.first, options.first + options.files):
            readings.append(reading.read(number, mutations, Path(folder, "checkpoint")))
            if (problem := readings[-1].problem()) is not None:
                failed = True
                print(problem, flush=True)
            if len(readings) % _EVERY == 0:
                print(f"{len(readings)} files", file=sys.stderr, flush=True)
    print(reading.summary(readings))
    return int(failed)


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
