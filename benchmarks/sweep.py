"""Sweep over 200 operations beside PyTorch's, forward and backward: ``python -m telegrad.benchmarks.sweep --peer PYTHON``.

It prints the median of all ratios, and the operations that take more than 1.5 times PyTorch's time, the slowest first.
``sweep_cases/`` lists the operations.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median

from rich.console import Console
from rich.table import Table

from .command import finish, peers
from .figures import show, show_ratio
from .local import chosen, make_parser, measure
from .report import report_facts
from .results import Results
from .sweep_cases.all import CASES
from .sweep_cases.base import AIM


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print what is slow, and return the exit status: 1 if an operation of Telegrad failed."""
    own = make_parser("sweep", __doc__, rounds=3, seconds=0.03)
    own.add_argument("--all", action="store_true", help="print every operation")
    options = own.parse_args(arguments)
    console = Console()
    results = measure(chosen(own, options, CASES), peers(own, options), options, console)
    ratios = ratios_of(results)
    slow = {name: ratio for name, ratio in ratios.items() if ratio > AIM}
    console.print(table_of(results, ratios if options.all else slow))
    if ratios:
        console.print(f"median of {len(ratios)} ratios: {median(ratios.values()):.2f}; {len(slow)} above {AIM}")
    report_facts(results, console)
    return finish(results, options)


def ratios_of(results: Results) -> dict[str, float]:
    """Return ours / theirs by operation, the largest first."""
    found = {row.name: results.ratio(row, "telegrad", "torch") for row in results.rows}
    known = {name: ratio for name, ratio in found.items() if ratio is not None}
    return dict(sorted(known.items(), key=lambda item: -item[1]))


def table_of(results: Results, ratios: dict[str, float]) -> Table:
    """Return a table of operations, their times and ratios."""
    table = Table("", "telegrad", "torch", "ratio")
    rows = {row.name: row for row in results.rows}
    for name, ratio in ratios.items():
        times = [show(results.values(rows[name], library), "s") for library in ("telegrad", "torch")]
        table.add_row(name, *times, show_ratio(ratio))
    return table


if __name__ == "__main__":
    sys.exit(main())
