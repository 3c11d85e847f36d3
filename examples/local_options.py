"""Command line of the examples that train in one process."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from telegrad.examples.ps_options import positive


@dataclass(frozen=True)
class Options:
    """Options of an example.

    Args:
        steps: optimizer steps.
        lr: largest learning rate.
        seed: of the random numbers.
        quiet: show no progress.
        out: folder for the files that it writes.
        resume: go on from the newest checkpoint there, where an example saves some.
        captured: compile the steps, where an example has steps that call other workers.
    """

    steps: int
    lr: float
    seed: int
    quiet: bool
    out: Path
    resume: bool = False
    captured: bool = False


def parse(
    name: str,
    about: str,
    steps: int,
    lr: float,
    arguments: Sequence[str] | None = None,
    *,
    resumes: bool = False,
    captures: bool = False,
) -> Options:
    """Return the options on the command line of the example ``name``.

    Args:
        name: of the example.
        about: what it does, for ``--help``.
        steps: optimizer steps, if not given.
        lr: largest learning rate, if not given.
        arguments: the command line; None means this process's.
        resumes: whether the example saves checkpoints, and has the option ``--resume``.
        captures: whether its steps can be compiled, with the option ``--captured``.
    """
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--steps", type=positive, default=steps, metavar="N", help="optimizer steps (%(default)s)")
    parser.add_argument("--lr", type=float, default=lr, metavar="RATE", help="largest learning rate (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--out", type=Path, default=Path("telegrad_runs") / name, metavar="DIR", help="for the files")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    if resumes:
        parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint in the folder")
    if captures:
        parser.add_argument("--captured", action="store_true", help="compile the steps, or say why they run eagerly")
    return Options(**vars(parser.parse_args(arguments)))
