"""Benchmark of RPC beside other libraries in one run: ``python -m telegrad.benchmarks.rpc --peer torch=PYTHON``.

``contenders.py`` lists who takes part and ``cases/`` what is measured; ``turns.py`` says in which order, ``results.py``
how figures are computed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from .aims import AIMS
from .cases.all import CASES, named
from .command import HINT, finish, parser, peers
from .contenders import CONTENDERS, Entry
from .machine import machine_facts, run_facts
from .report import report
from .results import Results, Source
from .turns import Run

ROUNDS, QUICK_ROUNDS = 3, 2
SECONDS, QUICK_SECONDS = 0.4, 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and return the exit status: 1 if a measurement of Telegrad failed."""
    own = make_parser()
    options = own.parse_args(arguments)
    interpreters, console = peers(own, options), Console()
    results = Results(machine=machine_facts())
    entries = choose(options, interpreters, results)
    cases = [named(name) for name in options.only] or [case for case in CASES if case.quick or not options.quick]
    with run_facts(results.run) as load:
        rounds = min(options.rounds, QUICK_ROUNDS) if options.quick else options.rounds
        seconds = min(options.seconds, QUICK_SECONDS) if options.quick else options.seconds
        try:
            Run(results, entries, rounds, seconds, console, load).measure(cases)
        except KeyboardInterrupt:
            results.run["interrupted"] = "what was measured until then is shown"
    title = f"calls between processes on this host, median of {rounds} rounds"
    report(results, AIMS, title, console)
    return finish(results, options)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    own = parser("rpc", __doc__.partition("\n")[0], rounds=ROUNDS, seconds=SECONDS)
    own.add_argument("--quick", action="store_true", help="fewer contenders, cases and rounds: less than two minutes")
    own.add_argument(
        *("--only", "--case"),
        action="append",
        default=[],
        metavar="NAME",
        choices=[case.name for case in CASES],
        help="measure this case; may be given several times",
    )
    own.add_argument(
        "--contender",
        action="append",
        default=[],
        metavar="NAME",
        choices=[entry.name for entry in CONTENDERS],
        help=f"measure this contender; may be given several times ({', '.join(entry.name for entry in CONTENDERS)})",
    )
    return own


def choose(options: argparse.Namespace, interpreters: dict[str, str], results: Results) -> dict[Entry, str]:
    """Return the contenders that take part with the interpreter of each; note in the results who is left out."""
    chosen: dict[Entry, str] = {}
    for entry in CONTENDERS:
        if entry.name not in options.contender and (options.contender or (options.quick and not entry.quick)):
            continue
        if python := interpreters.get(entry.environment) if entry.environment else sys.executable:
            chosen[entry] = python
        elif not options.ours_only:
            results.contenders.append(Source(entry.name, missing=HINT.format(entry.environment)))
    return chosen


if __name__ == "__main__":
    sys.exit(main())
