"""Benchmark of PyTorch's tensors over Telegrad beside PyTorch's own RPC: ``python -m telegrad.benchmarks.guests``.

Both have the same tensors, models and optimizers, and take turns. The steps of a job that runs are measured, and whole runs
of the programs, in which starting takes most of the time. Their losses must be equal.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from math import isclose
from pathlib import Path

from rich.console import Console

from .aims import GUESTS as AIMS
from .cases import Case
from .cases.all import GUESTS as CASES
from .cases.programs import PROGRAMS
from .command import finish, parser, peers
from .contenders import GUESTS as CONTENDERS
from .contenders import OURS, Entry
from .environments import GUESTS, interpreter
from .machine import machine_facts, run_facts
from .report import report
from .results import Measurement, Results, Row
from .scripts import run_script, whole
from .turns import Run

PRECISION = 1e-12


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and return the exit status: 1 if a measurement of Telegrad failed, or losses differ."""
    own = make_parser()
    options = own.parse_args(arguments)
    console, results = Console(), Results(machine=machine_facts())
    entries = choose(own, options)
    cases = [case for case in CASES if not options.only or case.name in options.only]
    with run_facts(results.run) as load:
        try:
            Run(results, entries, options.rounds, options.seconds, console, load).measure(cases)
            run_scripts(results, entries, cases, options.scripts)
        except KeyboardInterrupt:
            results.run["interrupted"] = "what was measured until then is shown"
    compare_losses(results)
    report(results, AIMS, f"PyTorch's tensors over Telegrad and PyTorch's RPC, {options.rounds} rounds", console)
    return finish(results, options)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    own = parser("guests", __doc__.partition("\n")[0], rounds=5, seconds=1.0)
    names = [case.name for case in CASES]
    own.add_argument("--only", action="append", metavar="NAME", choices=names, help=f"of {', '.join(names)}")
    own.add_argument("--scripts", type=int, default=2, metavar="N", help="whole runs of each program (default 2)")
    return own


def choose(own: argparse.ArgumentParser, options: argparse.Namespace) -> dict[Entry, str]:
    """Return the contenders with their interpreters: the one that runs this if it has PyTorch, or that of ``make guests``."""
    here = sys.executable if importlib.util.find_spec("torch") else interpreter(GUESTS)
    if not Path(here).exists():
        own.error(f"PyTorch is not here; run `make guests`, which makes {GUESTS}")
    theirs = peers(own, options).get("torch", here)
    return {
        entry: here if entry.name == OURS else theirs
        for entry in CONTENDERS
        if not options.ours_only or entry.name == OURS
    }


def run_scripts(results: Results, entries: dict[Entry, str], cases: Sequence[Case], rounds: int) -> None:
    """Run each program as a whole, in turn with each contender."""
    programs = [case.name for case in cases if case.name in PROGRAMS]
    results.rows += [Row(whole(program), whole(program), "start") for program in programs if rounds]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for program in programs:
                for entry, python in entries.items():
                    run_script(results, program, entry, python, Path(folder))


def compare_losses(results: Results) -> None:
    """Note an error where losses of Telegrad differ from those of PyTorch's RPC."""
    for found in [found for found in results.measurements if found.contender == OURS]:
        for source in results.contenders:
            other = results.find(found.case, source.name)
            if not (found.error or other.error) and differ(found, other):
                found.error = f"its losses are not those of {source.name}"


def differ(one: Measurement, other: Measurement) -> bool:
    """Return whether losses of any two rounds are not the same."""
    rounds = [
        [value for name, value in figures.items() if name.startswith("loss")]
        for figures in (*one.rounds, *other.rounds)
    ]
    return any(
        len(losses) != len(rounds[0]) or not all(isclose(*pair, rel_tol=PRECISION) for pair in zip(losses, rounds[0]))
        for losses in rounds
    )


if __name__ == "__main__":
    sys.exit(main())
