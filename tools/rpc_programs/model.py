"""Results of a program in one process, without calls, references or streams: what it must compute anywhere."""

from __future__ import annotations

from functools import reduce
from typing import Any

from .cells import FAILING_SHARE, GRAPH_FUNCTIONS, Cell, ProgramError, combine
from .digests import digest, failed
from .graph import GIVEN, START, Node, sinks
from .meshes import mesh_in_one_process
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
        case "graph":
            return digest(graph_in_one_process(step.graph, values[0], cells))
        case "mesh":
            return _on_mesh(step, values, cells)
        case "drop":
            return 0
    return _streamed(values[0], step)


def _on_mesh(step: Step, values: list[int], cells: list[Cell]) -> int:
    assert step.mesh is not None
    try:
        return mesh_in_one_process(step.mesh, values[0], cells)
    except ProgramError as error:
        return failed(error.args[0])


def _streamed(start: int, step: Step) -> int:
    if step.taken > step.count and start % FAILING_SHARE == 0:  # somebody sees the end
        return failed(start)
    return digest([combine(start, number) for number in range(min(step.count, step.taken))])


def graph_in_one_process(graph: tuple[Node, ...], start: int, cells: list[Cell]) -> list[int]:
    """Return the results of a graph's sinks: of a cell its number, of a failure a number that tells of it.

    Args:
        graph: the calls.
        start: the number that they begin with.
        cells: the cell that they may use, if there is one.
    """
    made: dict[int, Any] = {START: start, **dict(zip([GIVEN], cells))}
    for number, node in enumerate(graph):
        left, right = made[node.left], made[node.right]
        try:
            for each in (left, right):
                if isinstance(each, ProgramError):
                    raise each
            made[number] = GRAPH_FUNCTIONS[node.function](left, right)
        except ProgramError as error:
            made[number] = error
    return [outcome_of(made[number]) for number in sinks(graph)]


def outcome_of(value: Any) -> int:
    """Return the result of a call of a graph as a number."""
    if isinstance(value, ProgramError):
        return failed(value.args[0])
    return value.number if isinstance(value, Cell) else int(value)
