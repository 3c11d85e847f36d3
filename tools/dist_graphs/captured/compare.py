"""``compare``: a random step on twins, eagerly and compiled, and how they differ."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any, NamedTuple

from ....capture.extend import Compiled
from ....rpc import rpc_sync
from . import layers
from .program import OF_WORKERS, STEPS, StepProgram
from .twin import OWN, Twin


class StepsOutcome(NamedTuple):
    """Outcome of a random step that was made several times.

    Attributes:
        steps: how many.
        replays: how many of these were replayed.
        reasons: why others ran eagerly: reasons with counts of steps.
        problem: the first difference, or ``None``.
    """

    steps: int
    replays: int
    reasons: Counter[str]
    problem: str | None


def compare(program: StepProgram) -> StepsOutcome:
    """Make a step several times on each of two twins, one eager and one compiled, in turns.

    Args:
        program: the step.
    """
    eager, other = Twin(program, "eager"), Twin(program, "compiled")
    step: Any = Compiled(other.step, False)
    replays, reasons = 0, Counter[str]()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r".*runs eagerly")
            for number in range(STEPS):
                _change(program, (eager, other), number)
                before = _replays(step)
                expected, found = eager.outcome(eager.step, number), other.outcome(step, number)
                _mend(program, (eager, other), number)
                if expected != found:
                    return StepsOutcome(number, replays, reasons, f"step {number} gave {found}, and eagerly {expected}")
                replayed = _replays(step) > before
                replays += replayed
                reasons.update([] if replayed else [_reason(step, expected)])
        problem = None if eager.digests() == other.digests() else "the parameters differ after the last step"
        return StepsOutcome(STEPS, replays, reasons, problem)
    finally:
        for rank in {0, *(at for at, _ in program.layers)}:
            rpc_sync(rank, layers.change_worker, ("restored",))
        eager.close()
        other.close()


def _change(program: StepProgram, twins: tuple[Twin, Twin], number: int) -> None:
    place = number % len(program.layers)
    for name in program.changes[number]:
        if name in OF_WORKERS:
            rpc_sync(program.layers[place][0], layers.change_worker, (name,))
        elif name != "rows":
            for twin in twins:
                twin.change(OWN if name.startswith("own ") else place, name.removeprefix("own "))


def _mend(program: StepProgram, twins: tuple[Twin, Twin], number: int) -> None:
    for twin in twins:
        for name in program.changes[number]:
            if name.endswith("fails"):
                twin.change(OWN if name == "own fails" else number % len(program.layers), "mended")


def _replays(step: Compiled) -> int:
    return sum(plan.replays for plan in step.plans())


def _reason(step: Compiled, outcome: str) -> str:
    if outcome.endswith("Error"):
        return f"it raised {outcome}"
    reasons = [each.reason for each in step._known() if each.reason]
    return reasons[-1] if reasons else "recorded"
