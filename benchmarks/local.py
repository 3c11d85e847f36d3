"""Our tensors, layers and optimizers beside PyTorch's, on one thread: ``python -m telegrad.benchmarks.local --peer PYTHON``.

A process of each library stands ready, and a round asks every case of both in turn, so that a noisy minute hits both.
The ratio of a case is the median of the ratios of its rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from .local_cases import CASES
from .report import Heading, report
from .runner import Contender, measure_in_turn

SCRIPT = Path(__file__).parent / "local_contender.py"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
HINT = "torch is not importable here: name an interpreter that has it with --peer PYTHON (make bench PEER=PYTHON)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 when one of our own measurements failed."""
    options = parse(arguments)
    console = Console()
    cases = [case for case in CASES if not options.only or any(part in case.name for part in options.only)]
    contenders = list_contenders(options)
    if len(contenders) == 1 and not options.ours_only:
        console.print(f"[yellow]{HINT}[/]")
    measure_in_turn(contenders, [case.name for case in cases], options.rounds, console)
    heading = Heading(
        f"one step on one thread, median of {options.rounds} rounds",
        "ratio: ours / theirs, median of the rounds' ratios; green: within the aim",
        {case.name: case.aim for case in cases},
    )
    report(contenders, [case.name for case in cases], heading, console, options.json)
    return 1 if contenders[0].results.errors else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.benchmarks.local", description=__doc__.splitlines()[0])
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that can import torch")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds per case (default 7)")
    parser.add_argument("--seconds", type=float, default=0.3, metavar="S", help="time of a round (default 0.3)")
    parser.add_argument("--only", action="append", metavar="TEXT", help="measure the cases with this in their name")
    parser.add_argument("--ours-only", action="store_true", help="leave PyTorch out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement here")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds takes a number of at least 1")
    if options.only and not any(part in case.name for part in options.only for case in CASES):
        parser.error(f"no case has that in its name; there are: {', '.join(case.name for case in CASES)}")
    return options


def list_contenders(options: argparse.Namespace) -> list[Contender]:
    """Ours, and PyTorch if there is one."""
    here = sys.executable if importlib.util.find_spec("torch") else None
    pythons = {"telegrad": sys.executable, "torch": None if options.ours_only else options.peer or here}
    return [
        Contender(library, [python, str(SCRIPT), library, str(options.seconds)], ONE_THREAD)
        for library, python in pythons.items()
        if python
    ]


if __name__ == "__main__":
    sys.exit(main())
