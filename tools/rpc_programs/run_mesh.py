"""Run of a call on a mesh of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...rpc import Mesh, mesh, rpc_async, scattered
from ...rref import RRef, remote, value
from . import cells as there
from .cells import MODULUS
from .digests import digest
from .meshes import MeshCall, gathered

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "call": there.call_named,
    "list": there.listed,
    "async function": there.slowly,
    "promise": there.promised,
    "passed on": there.passed_on,
}
TAKES_ANOTHER = ("promise", "passed on")  # functions that call another worker


async def mesh_across(call: MeshCall, start: int, cells: Sequence[RRef], block: bool) -> int:
    """Return the result of a call, as ``mesh_in_one_process`` does.

    Args:
        call: the call.
        start: a number that all workers get.
        cells: a reference to the cell that it uses, if there is one.
        block: wait for results in a way that blocks the thread.
    """
    called = mesh(list(call.ranks), shape={"row": len(call.ranks) // call.columns, "column": call.columns})
    if call.comes == "row":
        called = called.at(row=-1)
    numbers = [call.numbers[place] for place in call.places]
    if call.runs == "cell":
        arguments = (cells[0], "add", scattered([(each,) for each in numbers]))
        (await _outcome(called.call_async(there.use, arguments), block)).values()  # raises
        return int(await cells[0].rpc_async().read())
    if call.runs == "objects":
        return await _objects(call, called, start, numbers, block)
    with _promised(call, start) as promised:
        return await _functions(call, called, promised, numbers, block)


async def _functions(call: MeshCall, called: Mesh, start: Any, numbers: list[int], block: bool) -> int:
    """Call a function on each worker."""
    names = scattered(["fail" if place == call.failing else "combine" for place in call.places])
    others = (call.ranks[0],) if call.runs in TAKES_ANOTHER else ()
    arguments = (names, start, scattered(numbers), *others)
    return _told(call, await _outcome(called.call_async(FUNCTIONS[call.runs], arguments, reduce=call.reduce), block))


@contextmanager
def _promised(call: MeshCall, start: int) -> Iterator[Any]:
    """Give what stands for the number, which another worker makes meanwhile."""
    if call.given == "future":
        yield rpc_async(call.ranks[-1], there.slowly, ("combine", 0, start))
    elif call.given == "reference":
        with remote(call.ranks[-1], there.slowly, ("combine", 0, start)) as reference:
            yield value(reference)
    else:
        yield start


async def _objects(call: MeshCall, called: Mesh, start: int, numbers: list[int], block: bool) -> int:
    """Make an object on each worker, and call a method of all."""
    if block:
        objects = called.remote(there.Cell, (scattered(numbers),))
        references = list(objects)
        answer = objects.call_async("add", (start,), reduce=call.reduce)
    else:  # ``remote`` waits in a way that blocks
        references = list(await called.call_async(there.returned, (scattered(numbers),)))
        for each in references:
            if isinstance(each, BaseException):
                raise each
        answer = called.call_async(there.use, (scattered(references), "add", (start,)), reduce=call.reduce)
    try:
        return _told(call, await _outcome(answer, block))
    finally:
        for reference in references:
            reference.release()


async def _outcome(answer: Any, block: bool) -> Any:
    return answer.wait() if block else await answer


def _told(call: MeshCall, found: Any) -> int:
    if call.comes == "sum":
        return int(found) % MODULUS
    if call.comes == "cat":
        return digest(found)
    return gathered(call, [found[place] for place in range(len(found))] if call.comes == "by place" else list(found))
