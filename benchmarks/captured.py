"""Benchmark of compiled training steps beside PyTorch's eager ones: ``python -m telegrad.benchmarks.captured --peer PYTHON``.

It is measured as the benchmark of local training is (``local.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from .aims import Aim
from .captured_cases import CASES
from .command import finish, peers
from .local import chosen, make_parser, measure
from .report import report


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 if a measurement of Telegrad failed."""
    own = make_parser("captured", __doc__, rounds=7, seconds=0.3)
    options = own.parse_args(arguments)
    cases, console = chosen(own, options, CASES), Console()
    results = measure(cases, peers(own, options), options, console)
    aims = [Aim(case.name, "telegrad", "torch", case.aim) for case in cases]
    report(results, aims, f"one compiled step on one thread, median of {options.rounds} rounds", console)
    return finish(results, options)


if __name__ == "__main__":
    sys.exit(main())
