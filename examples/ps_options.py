"""Options of the parameter server, which it sends to every trainer."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MODES = ("sync", "async")


@dataclass(frozen=True)
class Options:
    """Options on which server and trainers must agree."""

    epochs: int = 40
    batch_size: int = 32  # of each trainer
    lr: float = 0.1
    momentum: float = 0.9
    seed: int = 0
    mode: str = "sync"
    trainers: int = 2
    quiet: bool = False
    double: bool = False  # float64 throughout, for the check
    out: Path = Path("telegrad_runs/demo")
    checkpoint: Path | None = None
    captured: bool = False  # compiled steps of trainers, in async mode

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, which falls from ``lr`` to nearly 0 along half a cosine."""
        return self.lr * 0.5 * (1.0 + math.cos(math.pi * epoch / self.epochs))


def parse(arguments: Sequence[str] | None = None) -> tuple[Options, bool]:
    """Return the options on the command line, and whether ``--check`` is among them."""
    defaults = Options()
    parser = argparse.ArgumentParser(
        prog="parameter_server", description="A parameter server and its trainers learn handwritten digits."
    )
    parser.add_argument("--epochs", type=positive, default=defaults.epochs, metavar="N")
    parser.add_argument("--batch-size", type=positive, default=defaults.batch_size, metavar="N", help="per trainer")
    parser.add_argument("--lr", type=float, default=defaults.lr, metavar="RATE", help="the first epoch's learning rate")
    parser.add_argument("--seed", type=int, default=defaults.seed, metavar="N")
    parser.add_argument("--mode", choices=MODES, default=defaults.mode)
    parser.add_argument("--trainers", type=positive, default=defaults.trainers, metavar="N", help="when run alone")
    parser.add_argument("--out", type=Path, default=defaults.out, metavar="DIR", help="where the files go")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save there, and go on from there: async, whichever worker dies"
    )
    parser.add_argument("--check", action="store_true", help="compare distributed with single-process gradients")
    parser.add_argument("--captured", action="store_true", help="compile the trainers' steps: async")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    values = vars(parser.parse_args(arguments))
    check = values.pop("check")
    return Options(**values), check


def positive(text: str) -> int:
    """Return the text as a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"it must be at least 1, you gave {text}")
    return number
