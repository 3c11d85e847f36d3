"""Our RPC beside PyTorch's, measured in turn in one run: ``python -m telegrad.benchmarks.rpc --peer PYTHON``.

Two processes of each contender stand ready; a round asks every case of every contender in turn, so that a noisy minute
hits all of them. ``report.py`` says how the figures are put together.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from .cases import CASES
from .report import Heading, report
from .runner import Contender, measure_in_turn

FOLDER = Path(__file__).parent
OURS = "telegrad"
HINT = "torch is not importable here: name an interpreter that has it with --peer PYTHON (make bench PEER=PYTHON)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 when one of our own measurements failed."""
    options = parse(arguments)
    console = Console()
    cases = [case.name for case in CASES if options.only in (None, case.name)]
    contenders = list_contenders(options)
    if len(contenders) == 1 and not options.ours_only:
        console.print(f"[yellow]{HINT}[/]")
    measure_in_turn(contenders, cases, options.rounds, console)
    heading = Heading(
        f"RPC between two processes on this host, median of {options.rounds} rounds",
        "ratio: ours / theirs, median of the rounds' ratios, below 1 is better; burst: time per call",
    )
    report(contenders, cases, heading, console, options.json)
    return 1 if contenders[0].results.errors else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.benchmarks.rpc", description="our RPC beside PyTorch's")
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that can import torch")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds per case (default 5)")
    parser.add_argument("--only", metavar="NAME", choices=[case.name for case in CASES], help="measure one case")
    parser.add_argument("--lane", action="append", metavar="NAME", help="also measure ours on this lane alone")
    parser.add_argument("--ours-only", action="store_true", help="leave PyTorch out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement here")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds takes a number of at least 1")
    return options


def list_contenders(options: argparse.Namespace) -> list[Contender]:
    """Ours first, then PyTorch over TCP and with its default transports, as far as there is one."""
    script = str(FOLDER / "peer_telegrad.py")
    contenders = [Contender(OURS, [sys.executable, script])]
    lanes = options.lane or []
    contenders += [Contender(f"{OURS} ({lane})", [sys.executable, script, "--transport", lane]) for lane in lanes]
    here = sys.executable if importlib.util.find_spec("torch") else None
    python = None if options.ours_only else options.peer or here
    if python:
        script = str(FOLDER / "peer_torch.py")
        contenders += [
            Contender("torch, TCP", [python, script, "--transport", "tcp"]),
            Contender("torch, default", [python, script, "--transport", "default"]),
        ]
    return contenders


if __name__ == "__main__":
    sys.exit(main())
