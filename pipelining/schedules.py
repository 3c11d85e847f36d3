"""Schedules: the order in which each stage of a pipeline works on micro-batches.

* ``GPipe`` (Y. Huang et al., 2019): all forwards, then all backwards. A stage keeps what all micro-batches saved.
* ``1F1B`` (D. Narayanan et al., "PipeDream", 2019): as soon as a micro-batch can go back, a backward follows each forward.
  Stage s of p keeps what at most p - s micro-batches saved, and is busy at the same times in sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

FORWARD, BACKWARD = "forward", "backward"


class Action(NamedTuple):
    """One piece of work of a stage."""

    kind: str  # FORWARD or BACKWARD
    microbatch: int


def _forwards(microbatches: range) -> list[Action]:
    return [Action(FORWARD, number) for number in microbatches]


def _backwards(microbatches: range) -> list[Action]:
    return [Action(BACKWARD, number) for number in microbatches]


def gpipe(stage: int, stages: int, microbatches: int) -> list[Action]:
    """Return all forwards, then all backwards.

    Args:
        stage: not used.
        stages: not used.
        microbatches: their number.
    """
    return _forwards(range(microbatches)) + _backwards(range(microbatches))


def one_f_one_b(stage: int, stages: int, microbatches: int) -> list[Action]:
    """Return forwards until the first micro-batch can come back, then one backward after each forward, then the rest.

    Args:
        stage: number of the stage, from 0.
        stages: number of all stages.
        microbatches: their number.
    """
    ahead = min(stages - stage - 1, microbatches)
    steady = [
        action
        for number in range(ahead, microbatches)
        for action in (Action(FORWARD, number), Action(BACKWARD, number - ahead))
    ]
    return _forwards(range(ahead)) + steady + _backwards(range(microbatches - ahead, microbatches))


def forward_only(stage: int, stages: int, microbatches: int) -> list[Action]:
    """Return all forwards, for a pipeline that does not train.

    Args:
        stage: not used.
        stages: not used.
        microbatches: their number.
    """
    return _forwards(range(microbatches))


Schedule = Callable[[int, int, int], list[Action]]
SCHEDULES: dict[str, Schedule] = {"gpipe": gpipe, "1f1b": one_f_one_b}


def schedule_of(name: str) -> Schedule:
    """Return the schedule of a name, in any case: ``"GPipe"`` or ``"1F1B"``.

    Raises:
        ValueError: there is none.
    """
    found = SCHEDULES.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"schedule must be 'GPipe' or '1F1B'; you gave {name!r}")
    return found


def bubble(stages: int, microbatches: int) -> float:
    """Return the share of time in which stages are idle, (p - 1) / (m + p - 1), if all pieces of work take equally long.

    Args:
        stages: their number p.
        microbatches: their number m.
    """
    return (stages - 1) / (microbatches + stages - 1)
