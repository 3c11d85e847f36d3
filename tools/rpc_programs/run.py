"""Run of a program across workers: each step in its way, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ...rpc import rpc_async, rpc_sync, stream
from ...rref import RRef, remote
from . import cells as there
from .cells import Cell, Parcel, ProgramError
from .digests import digest, failed
from .program import BLOCKING, Program, Step
from .run_graph import graph_across
from .run_mesh import mesh_across


async def results_across(program: Program) -> list[int]:
    """Return the result of each step, as ``results_in_one_process`` does; all references are released in the end."""
    made: list[Any] = []
    results: list[int] = []
    try:
        for step in program.steps:
            value = await _run(step, [made[number] for number in step.values], [made[number] for number in step.cells])
            made.append(value)
            results.append(await _read(value) if isinstance(value, RRef) else value)
        return results
    finally:
        for value in made:
            if isinstance(value, RRef):
                value.release()


async def _read(cell: RRef) -> int:
    number: int = await cell.rpc_async().read()
    return number


async def _run(step: Step, values: list[int], cells: list[RRef]) -> Any:
    """Run a step, and return its result; a failure as planned is a result."""
    try:
        return await ACTIONS[step.action](step, values, cells)
    except ProgramError as error:
        (number,) = error.args
        return failed(number)


# -- actions


async def _literal(step: Step, values: list[int], cells: list[RRef]) -> int:
    return step.count


async def _call(step: Step, values: list[int], cells: list[RRef]) -> Any:
    name, (left, right) = step.action, (*values, *values)[:2]
    blocking, way = step.way.startswith(BLOCKING), step.way.removeprefix(BLOCKING)
    if way == "reference":
        with remote(step.at, there.call_named, (name, left, right)) as reference:
            return reference.to_here() if blocking else await reference.to_here_async()
    ways: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "call": (there.FUNCTIONS[name], (left, right)),
        "async function": (there.slowly, (name, left, right)),
        "promise": (there.promised, (name, left, right, step.to)),
        "passed on": (there.passed_on_blocking if blocking else there.passed_on, (name, left, right, step.to)),
    }
    function, arguments = ways[way]
    return rpc_sync(step.at, function, arguments) if blocking else await rpc_async(step.at, function, arguments)


async def _make(step: Step, values: list[int], cells: list[RRef]) -> RRef:
    cell = remote(step.at, Cell, (values[0],))
    if step.way.removeprefix(BLOCKING) == "awaited":
        await cell._get_future()
    return cell


async def _return(step: Step, values: list[int], cells: list[RRef]) -> Any:
    return await rpc_async(step.at, there.returned, (values[0],))


async def _method(step: Step, cell: RRef, method: str, *arguments: Any) -> Any:
    blocking, way = step.way.startswith(BLOCKING), step.way.removeprefix(BLOCKING)
    if way == "proxy":
        bound = getattr(cell.rpc_sync() if blocking else cell.rpc_async(), method)
        return bound(*arguments) if blocking else await bound(*arguments)
    if way == "remote proxy":
        with getattr(cell.remote(), method)(*arguments) as result:
            return result.to_here() if blocking else await result.to_here_async()
    if way == "to_here":
        return getattr(cell.to_here() if blocking else await cell.to_here_async(), method)()
    if way == "elsewhere":
        return await rpc_async(step.at, there.use_elsewhere, (cell, method, arguments, step.to))
    if blocking:
        return rpc_sync(step.at, there.use_blocking, (cell, method, arguments))
    return await rpc_async(step.at, there.use, (cell, method, arguments))


async def _add(step: Step, values: list[int], cells: list[RRef]) -> Any:
    return await _method(step, cells[0], "add", values[0])


async def _add_together(step: Step, values: list[int], cells: list[RRef]) -> int:
    calls = [
        rpc_async(step.at if rank % 2 else step.to, there.use, (cells[0], "add", (values[0],)))
        for rank in range(step.count)
    ]
    for call in calls:
        await call
    return await _read(cells[0])


async def _read_in_a_way(step: Step, values: list[int], cells: list[RRef]) -> Any:
    return await _method(step, cells[0], "read")


async def _put_in(step: Step, values: list[int], cells: list[RRef]) -> Any:
    return await _method(step, cells[0], "put_in", cells[1])


async def _take_out(step: Step, values: list[int], cells: list[RRef]) -> RRef:
    found: RRef | None = await _method(step, cells[0], "take_out")
    return RRef(Cell(0)) if found is None else found


async def _object(step: Step, values: list[int], cells: list[RRef]) -> int:
    parcel: Parcel = await rpc_async(step.at, there.add_from, (Parcel(values[0], cells),))
    for cell in parcel.inside["cells"]:
        cell.release()
    return parcel.number


async def _graph(step: Step, values: list[int], cells: list[RRef]) -> int:
    blocking, way = step.way.startswith(BLOCKING), step.way.removeprefix(BLOCKING)
    return digest(await graph_across(step.graph, values[0], cells, way == "released", blocking))


async def _mesh(step: Step, values: list[int], cells: list[RRef]) -> int:
    assert step.mesh is not None
    return await mesh_across(step.mesh, values[0], cells, step.way.startswith(BLOCKING))


async def _drop(step: Step, values: list[int], cells: list[RRef]) -> int:
    cells[0].release()
    return 0


async def _stream(step: Step, values: list[int], cells: list[RRef]) -> int:
    generator = there.items_slowly if "async" in step.way else there.items
    return digest(await _taken(step, generator, values[0]))


async def _stream_of_cells(step: Step, values: list[int], cells: list[RRef]) -> int:
    generator = there.cells_slowly if "async" in step.way else there.cells
    numbers = []
    for cell in await _taken(step, generator, values[0]):
        with cell:
            numbers.append(await _read(cell))
    return digest(numbers)


async def _taken(step: Step, generator: Callable[..., Any], start: int) -> list[Any]:
    taken: list[Any] = []
    with stream(step.at, generator, (start, step.count), ahead=step.to) as items:
        try:
            while len(taken) < step.taken:
                taken.append(next(items) if step.way.startswith(BLOCKING) else await items.__anext__())
        except (StopIteration, StopAsyncIteration):
            pass
        except BaseException:
            for item in taken:
                if isinstance(item, RRef):
                    item.release()
            raise
    return taken


Action = Callable[[Step, list[int], list[RRef]], Awaitable[Any]]
ACTIONS: dict[str, Action] = {
    "literal": _literal,
    "combine": _call,
    "fail": _call,
    "make": _make,
    "return": _return,
    "add": _add,
    "add together": _add_together,
    "read": _read_in_a_way,
    "put in": _put_in,
    "take out": _take_out,
    "object": _object,
    "graph": _graph,
    "mesh": _mesh,
    "drop": _drop,
    "stream": _stream,
    "stream of cells": _stream_of_cells,
}
