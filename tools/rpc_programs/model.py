"""Results of a program in one process, without calls, references or streams: what it must compute anywhere."""

from __future__ import annotations

from functools import reduce
from typing import Any

from .cells import FAILING_SHARE, Cell, combine
from .program import Program, Step


def results_in_one_process(program: Program) -> list[int]:
    """Return the result of each step: of a reference the number in its cell; of a failure a number that tells of it."""
    made: list[Any] = []
    results = []
    for step in program.steps:
        value = _run(step, [made[number] for number in step.values], [made[number] for number in step.cells])
        made.append(value)
        results.append(value.number if isinstance(value, Cell) else value)
    return results


def _run(step: Step, values: list[int], cells: list[Cell]) -> Any:
    match step.action:
        case "literal":
            return step.count
        case "combine":
            return combine(*values)
        case "fail":
            return failed(values[0])
        case "make" | "return":
            return Cell(values[0])
        case "add":
            return cells[0].add(values[0])
        case "add together":
            return [cells[0].add(values[0]) for _ in range(step.count)][-1]
        case "read":
            return cells[0].read()
        case "put in":
            return cells[0].put_in(cells[1])
        case "take out":
            return cells[0].take_out() or Cell(0)
        case "object":
            return reduce(lambda number, cell: cell.add(number), cells, values[0])
        case "drop":
            return 0
    return _streamed(values[0], step)


def _streamed(start: int, step: Step) -> int:
    if step.taken > step.count and start % FAILING_SHARE == 0:  # somebody sees the end
        return failed(start)
    return digest([combine(start, number) for number in range(min(step.count, step.taken))])


def failed(number: int) -> int:
    """Return the result of a step that raises as planned."""
    return -combine(number, 1)


def digest(numbers: list[int]) -> int:
    """Return one number of many, in their order."""
    return reduce(combine, numbers, len(numbers))
