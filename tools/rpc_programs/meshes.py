"""Calls on meshes, as data: what each worker gets, how it runs the function, and how the results come back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .cells import MODULUS, Cell, ProgramError, combine
from .digests import digest, failed

RUNS = ("call", "async function", "promise", "passed on", "list", "objects", "cell")
GIVEN = ("number", "future", "reference")
COMES = ("values", "by place", "row", "sum", "cat")
LARGEST_NUMBER = 1000


@dataclass(frozen=True)
class MeshCall:
    """Call on a mesh.

    Attributes:
        ranks: the workers, in the order of the mesh.
        columns: workers in a row of it.
        numbers: what each worker gets.
        runs: how the function runs; "objects": as a method of new objects, "cell": as uses of one cell by all.
        comes: how the results come back; "row": of the last row, which alone is called.
        failing: place of a worker on which the function fails; -1 for none.
        given: what stands for the number that all get: it, the future of a call, or the value of a reference.
    """

    ranks: tuple[int, ...]
    columns: int
    numbers: tuple[int, ...]
    runs: str
    comes: str
    failing: int
    given: str

    @property
    def places(self) -> range:
        """Places of the workers that are called."""
        return range(len(self.ranks) - self.columns if self.comes == "row" else 0, len(self.ranks))

    @property
    def reduce(self) -> str | None:
        """The reduction, if there is one."""
        return self.comes if self.comes in ("sum", "cat") else None


def make_mesh_call(rng: random.Random, workers: int, given: bool) -> MeshCall:
    """Return a random call.

    Args:
        rng: decides.
        workers: number of workers of the job.
        given: it uses a cell that is there before.
    """
    ranks = rng.sample(range(workers), rng.randint(1, workers))
    count = len(ranks)
    columns = rng.choice([each for each in range(1, count + 1) if count % each == 0])
    runs = "cell" if given else rng.choice(RUNS[:-1])
    comes = "values" if given else "cat" if runs == "list" else rng.choice(COMES[:-1])
    fails = runs not in ("objects", "cell") and rng.random() < 0.3
    failing = rng.randrange(count) if fails else -1
    numbers = tuple(rng.randrange(LARGEST_NUMBER) for _ in ranks)
    return MeshCall(tuple(ranks), columns, numbers, runs, comes, failing, rng.choice(GIVEN))


def mesh_in_one_process(call: MeshCall, start: int, cells: Sequence[Cell]) -> int:
    """Return the result of a call.

    Args:
        call: the call.
        start: a number that all workers get.
        cells: the cell that it uses, if there is one.

    Raises:
        ProgramError: a function failed, and the results are reduced.
    """
    if call.runs == "cell":
        return [cells[0].add(number) for number in call.numbers][-1]
    if call.runs == "objects":
        return gathered(call, [Cell(call.numbers[place]).add(start) for place in call.places])
    results = [
        ProgramError(start) if each == call.failing else combine(start, call.numbers[each]) for each in call.places
    ]
    for error in results if call.reduce else ():
        if isinstance(error, ProgramError):
            raise error
    return gathered(call, results)


def gathered(call: MeshCall, results: Sequence[Any]) -> int:
    """Return the results of the workers as one number; a failure as planned is a result.

    Raises:
        BaseException: another failure.
    """
    numbers = [_number(result) for result in results]
    return sum(numbers) % MODULUS if call.comes == "sum" else digest(numbers)


def _number(result: Any) -> int:
    if isinstance(result, ProgramError):
        return failed(result.args[0])
    if isinstance(result, BaseException):
        raise result
    return int(result)
