"""Benchmark of local training beside PyTorch's: ``python -m telegrad.benchmarks.local --peer PYTHON``.

Each library has a process, and a round measures every case of both in turn, so that a noisy minute affects both.
Telegrad's has the allocator's setting that workers get from ``telegrad run``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from rich.console import Console

from ..core.allocator import ENVIRONMENT
from .aims import Aim
from .command import HINT, finish, parser, peers
from .contenders import ONE_THREAD, START
from .local_cases import CASES
from .machine import machine_facts, run_facts
from .results import Results, Row, Source
from .runner import Contender


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 if a measurement of Telegrad failed."""
    own = make_parser()
    options = own.parse_args(arguments)
    cases = [case for case in CASES if not options.only or any(part in case.name for part in options.only)]
    if not cases:
        own.error(f"no case has that in its name; there are: {', '.join(case.name for case in CASES)}")
    results, console = Results(machine_facts()), Console()
    results.rows = [Row(case.name, case.name, "p50") for case in cases]
    pythons = {"telegrad": sys.executable, "torch": peers(own, options).get("torch")}
    with run_facts(results.run), console.status("measuring"):
        measure(results, pythons, options)
    aims = [Aim(case.name, "telegrad", "torch", case.aim) for case in cases]
    return finish(results, aims, f"one step on one thread, median of {options.rounds} rounds", options, console)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    own = parser("local", __doc__.partition("\n")[0], rounds=7, seconds=0.3)
    own.add_argument("--only", action="append", metavar="TEXT", help="measure the cases with this in their name")
    return own


def measure(results: Results, pythons: dict[str, str | None], options: argparse.Namespace) -> None:
    """Measure all cases of both libraries in turn."""
    settings: dict[str, dict[str, str]] = {"telegrad": dict(ENVIRONMENT)}
    with ExitStack() as stack:
        contenders = []
        for library, python in pythons.items():
            source = Source(library, missing="" if python or options.ours_only else HINT.format(library))
            results.contenders.append(source)
            if python:
                command = [python, START, "local_contender", library]
                contender = Contender(source, results, command, ONE_THREAD | settings.get(library, {}))
                contenders.append(stack.enter_context(contender))
        for contender in contenders:
            contender.await_ready()
        for _ in range(options.rounds):
            for row in results.rows:
                for contender in contenders:
                    contender.ask(row.case, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
