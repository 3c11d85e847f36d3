"""Benchmark of RPC beside PyTorch's, measured in turn in one run: ``python -m telegrad.benchmarks.rpc --peer PYTHON``.

Each contender has two processes; a round measures every case of every contender in turn, so that a noisy minute affects
all of them. ``report.py`` says how the numbers are computed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.allocator import ENVIRONMENT
from .cases import CASES
from .command import parser, run, torch_python
from .report import Heading
from .runner import Contender

FOLDER = Path(__file__).parent
OURS = "telegrad"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 if a measurement of Telegrad failed."""
    options = parse(arguments)
    heading = Heading(
        f"RPC between two processes on this host, median of {options.rounds} rounds",
        "ratio: ours / theirs, median of the rounds' ratios, below 1 is better; burst: time per call",
    )
    cases = [case.name for case in CASES if options.only in (None, case.name)]
    return run(list_contenders(options), cases, heading, options)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options on the command line."""
    own = parser("rpc", "our RPC beside PyTorch's", rounds=5)
    own.add_argument("--only", metavar="NAME", choices=[case.name for case in CASES], help="measure one case")
    own.add_argument("--lane", action="append", metavar="NAME", help="also measure ours on this lane alone")
    return own.parse_args(arguments)


def list_contenders(options: argparse.Namespace) -> list[Contender]:
    """Return the contenders: Telegrad, then PyTorch, if there is one, over TCP and with its default transports."""
    script = str(FOLDER / "peer_telegrad.py")
    # Workers of `telegrad run` have this setting of the allocator.
    contenders = [Contender(OURS, [sys.executable, script], ENVIRONMENT)]
    lanes = options.lane or []
    contenders += [
        Contender(f"{OURS} ({lane})", [sys.executable, script, "--transport", lane], ENVIRONMENT) for lane in lanes
    ]
    if python := torch_python(options):
        script = str(FOLDER / "peer_torch.py")
        contenders += [
            Contender("torch, TCP", [python, script, "--transport", "tcp"]),
            Contender("torch, default", [python, script, "--transport", "default"]),
        ]
    return contenders


if __name__ == "__main__":
    sys.exit(main())
