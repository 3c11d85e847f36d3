"""Benchmark of local training beside PyTorch's: ``python -m telegrad.benchmarks.local --peer PYTHON``.

Each library has a process, and a round measures every case of both in turn, so that a noisy minute affects both.
Telegrad's has the allocator's setting that workers get from ``telegrad run``.
The ratio of a case is the median of the ratios of its rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.allocator import ENVIRONMENT
from .command import parser, run, torch_python
from .local_cases import CASES
from .report import Heading
from .runner import Contender

SCRIPT = Path(__file__).parent / "local_contender.py"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 if a measurement of Telegrad failed."""
    options = parse(arguments)
    cases = [case for case in CASES if not options.only or any(part in case.name for part in options.only)]
    heading = Heading(
        f"one step on one thread, median of {options.rounds} rounds",
        "ratio: ours / theirs, median of the rounds' ratios; green: within the aim",
        {case.name: case.aim for case in cases},
    )
    return run(list_contenders(options), [case.name for case in cases], heading, options)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options on the command line."""
    own = parser("local", __doc__.splitlines()[0], rounds=7)
    own.add_argument("--seconds", type=float, default=0.3, metavar="S", help="time of a round (default 0.3)")
    own.add_argument("--only", action="append", metavar="TEXT", help="measure the cases with this in their name")
    options = own.parse_args(arguments)
    if options.only and not any(part in case.name for part in options.only for case in CASES):
        own.error(f"no case has that in its name; there are: {', '.join(case.name for case in CASES)}")
    return options


def list_contenders(options: argparse.Namespace) -> list[Contender]:
    """Return the contenders: Telegrad, and PyTorch if there is one."""
    pythons = {"telegrad": sys.executable, "torch": torch_python(options)}
    settings: dict[str, dict[str, str]] = {"telegrad": ENVIRONMENT, "torch": {}}
    return [
        Contender(library, [python, str(SCRIPT), library, str(options.seconds)], ONE_THREAD | settings[library])
        for library, python in pythons.items()
        if python
    ]


if __name__ == "__main__":
    sys.exit(main())
