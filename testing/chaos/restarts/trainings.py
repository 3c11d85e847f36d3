"""The trainings that are disturbed: their programs, how they are restarted, and what has to hold at their end."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..checks import Violation
from .diary import DONE, STEP, Line

Check = Callable[[Sequence[Line], Sequence[Line]], Iterator[Violation]]


def same_steps(lines: Sequence[Line], undisturbed: Sequence[Line]) -> Iterator[Violation]:
    """Check that each step used the samples of the undisturbed training, none was left out, and the results have equal bits."""
    expected = {(line.rank, line.step): line.note for line in undisturbed if line.kind == STEP}
    seen = {(line.rank, line.step) for line in lines if line.kind == STEP}
    for line in lines:
        if line.kind == STEP and line.note != expected.get((line.rank, line.step)):
            yield Violation("samples", f"w{line.rank} used {line.note} in step {line.step}")
    for rank, step in sorted(expected.keys() - seen):
        yield Violation("left out", f"w{rank} took no step {step}")
    results, last = _results(undisturbed), _results(lines)
    if last != results:
        yield Violation("weights", f"the training ended with {last}, undisturbed with {results}")


def same_batches(lines: Sequence[Line], undisturbed: Sequence[Line]) -> Iterator[Violation]:
    """Check that each step used samples of that step's batch, whoever had them, and that the results have equal bits."""
    batches: defaultdict[int, set[int]] = defaultdict(set)
    for line in undisturbed:
        if line.kind == STEP:
            batches[line.step] |= {*json.loads(line.note)}
    for line in lines:
        if line.kind == STEP and not batches[line.step] >= {*json.loads(line.note)}:
            yield Violation("samples", f"w{line.rank} used {line.note} in step {line.step}")
    expected, last = {*_results(undisturbed).values()}, _results(lines)
    if {*last.values()} != expected:
        yield Violation("weights", f"the training ended with {last}, undisturbed with {expected}")


def _results(lines: Sequence[Line]) -> dict[int, str]:
    """Return the last result of each worker, by rank."""
    return {line.rank: line.note for line in lines if line.kind == DONE}


@dataclass(frozen=True)
class Training:
    """One of them.

    Attributes:
        name: name of the program, a module of ``programs``.
        restart: which workers are restarted when one dies: ``telegrad run --restart``.
        workers: how many there are.
        steps: how many steps it takes, or each of its trainers.
        check: what has to hold of its diary, beside that of the undisturbed training.
        most_kills: most workers that are killed.
    """

    name: str
    restart: str
    workers: int
    steps: int
    check: Check
    most_kills: int = 2


TRAININGS = {
    training.name: training
    for training in (
        Training("data_parallel", "all", 3, 60, same_steps),
        Training("pipeline", "all", 3, 60, same_steps),
        Training("elastic", "one", 3, 500, same_batches),
        Training("parameter_server", "one", 3, 60, same_steps, most_kills=4),
    )
}
