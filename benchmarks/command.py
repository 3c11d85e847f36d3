"""Parts that both benchmark commands share: read options, measure contenders in turn, and report."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from rich.console import Console

from .report import Heading, report
from .runner import Contender, measure_in_turn

HINT = "torch is not importable here: name an interpreter that has it with --peer PYTHON (make bench PEER=PYTHON)"


def parser(name: str, about: str, rounds: int) -> argparse.ArgumentParser:
    """Return a parser of the options that both take; ``rounds`` is the default number of rounds."""
    made = argparse.ArgumentParser(prog=f"python -m telegrad.benchmarks.{name}", description=about)
    made.add_argument("--peer", metavar="PYTHON", help="an interpreter that can import torch")
    made.add_argument("--rounds", type=positive, default=rounds, metavar="N", help=f"of each case (default {rounds})")
    made.add_argument("--ours-only", action="store_true", help="leave PyTorch out")
    made.add_argument("--json", type=Path, metavar="FILE", help="write every measurement here")
    return made


def positive(text: str) -> int:
    """Return the text as a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number of at least 1 is needed")
    return number


def torch_python(options: argparse.Namespace) -> str | None:
    """Return the interpreter that has PyTorch, if there is one and it is wanted."""
    here = sys.executable if importlib.util.find_spec("torch") else None
    return None if options.ours_only else options.peer or here


def run(contenders: list[Contender], cases: list[str], heading: Heading, options: argparse.Namespace) -> int:
    """Measure, print the table, and return the exit status: 1 if a measurement of Telegrad failed."""
    console = Console()
    if len(contenders) == 1 and not options.ours_only:
        console.print(f"[yellow]{HINT}[/]")
    measure_in_turn(contenders, cases, options.rounds, console)
    report(contenders, cases, heading, console, options.json)
    return 1 if contenders[0].results.errors else 0
