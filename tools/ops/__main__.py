"""Command ``python -m telegrad.tools.ops [name ...]``: run checks, and print the dtypes and gradient orders that passed."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import track
from rich.table import Table

from ...testing.ops import report
from .catalogue import CHECKS


def main() -> None:
    """Check the operations named on the command line, or all; print a table; exit with 1 if one failed."""
    names = set(sys.argv[1:])
    chosen = [check for check in CHECKS if not names or check.name in names or check.name.split(":")[0] in names]
    console = Console()
    table = Table("operation", "orders", "samples", "dtypes", title=f"{len(chosen)} checks")
    failures = []
    for check in track(chosen, "checking", console=console, transient=True):
        try:
            held = report(check)
        except Exception as error:
            failures.append(f"{check.name}: {error}")
            table.add_row(check.name, "[red]failed[/red]", "", "")
        else:
            table.add_row(
                check.name, str(held.orders) if held.orders else "-", str(held.samples), " ".join(held.dtypes)
            )
    console.print(table)
    for failure in failures:
        console.print(f"[red]{failure}[/red]")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
