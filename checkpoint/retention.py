"""Choice of the checkpoints to keep: the last ones and the best ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Measured(NamedTuple):
    """Checkpoint by number, with its metric, if it has one."""

    number: int
    metric: float | None


def superfluous(checkpoints: Sequence[Measured], keep: int | None, keep_best: int, mode: str) -> list[int]:
    """Return the numbers of the checkpoints that are neither among the last nor among the best.

    Args:
        checkpoints: all complete ones.
        keep: how many of the last to keep; ``None`` is all.
        keep_best: how many of the best to keep. Of equal ones the earlier is better; none without a number is.
        mode: "min" if a lower metric is better, else "max".
    """
    if keep is None:
        return []
    last = sorted(each.number for each in checkpoints)[-keep:]
    best = ranked(checkpoints, mode)[:keep_best]
    return sorted({each.number for each in checkpoints} - {*last, *best})


def ranked(checkpoints: Sequence[Measured], mode: str) -> list[int]:
    """Return the numbers of the checkpoints that have a metric, the best first.

    Args:
        checkpoints: all complete ones.
        mode: as for ``superfluous``.
    """
    sign = 1 if mode == "min" else -1
    measured = [(sign * each.metric, each.number) for each in checkpoints if _is_number(each.metric)]  # type: ignore[operator]
    return [number for _, number in sorted(measured)]


def _is_number(metric: float | None) -> bool:
    return metric is not None and not math.isnan(metric)
