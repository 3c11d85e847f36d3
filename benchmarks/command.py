"""Parts that the benchmark commands share: their options, and the end of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from .contenders import OURS
from .environments import find_peers
from .results import Results

HINT = "not installed: name an interpreter that has it with --peer {0}=PYTHON, or run: make peers"


def parser(name: str, about: str, rounds: int, seconds: float) -> argparse.ArgumentParser:
    """Return a parser of the options that all take; ``rounds`` and ``seconds`` are defaults."""
    made = argparse.ArgumentParser(prog=f"python -m telegrad.benchmarks.{name}", description=about)
    made.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="[NAME=]PYTHON",
        help="an interpreter that has that library (torch if no name is given); beside those in .venv/peers",
    )
    made.add_argument("--rounds", type=positive, default=rounds, metavar="N", help=f"of each case (default {rounds})")
    made.add_argument("--seconds", type=float, default=seconds, metavar="S", help=f"of a round (default {seconds:g})")
    made.add_argument("--ours-only", action="store_true", help="leave the peers out")
    made.add_argument("--json", type=Path, metavar="FILE", help="write every measurement here")
    return made


def positive(text: str) -> int:
    """Return the text as a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number of at least 1 is needed")
    return number


def peers(own: argparse.ArgumentParser, options: argparse.Namespace) -> dict[str, str]:
    """Return the interpreters of the peers; wrong options end the program."""
    try:
        return {} if options.ours_only else find_peers(options.peer)
    except ValueError as error:
        own.error(str(error))


def finish(results: Results, options: argparse.Namespace) -> int:
    """Write the file, and return the exit status: 1 if a measurement of Telegrad failed."""
    if options.json:
        results.write(options.json)
    return 1 if any(found.error for found in results.measurements if found.contender == OURS) else 0
