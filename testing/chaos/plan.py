"""Plan of the faults of each round, drawn by seed from two shuffled lists, so that every fault is equally frequent."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .faults import Fate, Fault

HARMLESS_IN_A_ROUND = 3
FEWEST_WORKERS = 3


@dataclass(frozen=True)
class RoundPlan:
    """Plan of one round: its number, its seed and its faults in order."""

    number: int
    seed: int
    faults: list[Fault]


def plan_rounds(faults: Sequence[Fault], workers: int, seed: int) -> Iterator[RoundPlan]:
    """Yield rounds without end: first faults that every worker survives, then others while a majority is left.

    Args:
        faults: those to choose from.
        workers: how many workers a round starts with.
        seed: the same seed gives the same rounds.
    """
    source = random.Random(seed)
    harmless = _deal([fault for fault in faults if fault.fate is Fate.STAYS], source)
    fatal = _deal([fault for fault in faults if fault.fate is not Fate.STAYS], source)
    number = 0
    while True:
        chosen = [fault for fault, _ in zip(harmless, range(HARMLESS_IN_A_ROUND))]
        chosen += [fault for fault, _ in zip(fatal, range(workers - FEWEST_WORKERS + 1))]
        yield RoundPlan(number, source.randrange(1 << 30), chosen)
        number += 1


def _deal(faults: list[Fault], source: random.Random) -> Iterator[Fault]:
    while faults:
        yield from source.sample(faults, len(faults))
