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

from ..base.allocator import ENVIRONMENT
from .aims import Aim
from .command import HINT, finish, parser, peers
from .contenders import ONE_THREAD, START
from .local_cases import CASES, Case
from .machine import machine_facts, run_facts
from .report import report
from .results import Results, Row, Source
from .runner import Contender

SETTINGS = {"telegrad": dict(ENVIRONMENT), "torch": {}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 if a measurement of Telegrad failed."""
    return compare("local", __doc__, CASES, "one step on one thread", arguments)


def compare(name: str, about: str, cases: Sequence[Case], what: str, arguments: Sequence[str] | None) -> int:
    """Measure cases, print their table and aims, and return the exit status, as ``main`` does.

    Args:
        name: of the benchmark.
        about: docstring of its module.
        cases: those that can be chosen.
        what: what each case measures, for the table.
        arguments: of the command line; ``None`` for those of the process.
    """
    own = make_parser(name, about, rounds=7, seconds=0.3)
    options = own.parse_args(arguments)
    picked, console = chosen(own, options, cases), Console()
    results = measure(picked, peers(own, options), options, console)
    aims = [Aim(case.name, "telegrad", "torch", case.aim) for case in picked]
    report(results, aims, f"{what}, median of {options.rounds} rounds", console)
    return finish(results, options)


def make_parser(name: str, about: str, rounds: int, seconds: float) -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    own = parser(name, about.partition("\n")[0], rounds, seconds)
    own.add_argument("--only", action="append", metavar="TEXT", help="measure the cases with this in their name")
    return own


def chosen(own: argparse.ArgumentParser, options: argparse.Namespace, cases: Sequence[Case]) -> list[Case]:
    """Return the cases that the options name; if there are none, the program ends."""
    found = [case for case in cases if not options.only or any(part in case.name for part in options.only)]
    if not found:
        own.error(f"no case has that in its name; there are: {', '.join(case.name for case in cases)}")
    return found


def measure(cases: Sequence[Case], peers: dict[str, str], options: argparse.Namespace, console: Console) -> Results:
    """Return the results of all cases of both libraries, measured in turn."""
    results = Results(machine_facts(), rows=[Row(case.name, case.name, "p50") for case in cases])
    pythons = {"telegrad": sys.executable, "torch": peers.get("torch")}
    with run_facts(results.run) as load, ExitStack() as stack, console.status("measuring") as status:
        contenders = []
        for library, python in pythons.items():
            source = Source(library, missing="" if python else HINT.format(library))
            if python:
                command = [python, START, "local_contender", library]
                contender = Contender(source, results, command, ONE_THREAD | SETTINGS[library])
                contenders.append(stack.enter_context(contender))
            if python or not options.ours_only:
                results.contenders.append(source)
        for contender in contenders:
            contender.await_ready()
        for turn in range(options.rounds):
            for case in cases:
                status.update(f"round {turn + 1} of {options.rounds}: {case.name}")
                load.note()
                for contender in contenders:
                    contender.ask(case.name, options.seconds)
    return results


if __name__ == "__main__":
    sys.exit(main())
