"""Run of a graph of calls across workers: all are sent before any result is asked for."""

from __future__ import annotations

from typing import Any

from ...core.futures import Future
from ...rpc import rpc_async
from ...rref import RRef, remote, value
from .cells import GRAPH_FUNCTIONS, ProgramError
from .graph import GIVEN, START, Node, sinks
from .model import outcome_of


async def graph_across(graph: tuple[Node, ...], start: int, cells: list[RRef], release: bool, block: bool) -> list[int]:
    """Return the results of a graph's sinks, as ``graph_in_one_process`` does.

    Args:
        graph: the calls.
        start: the number that they begin with.
        cells: a reference to the cell that they may use, if there is one.
        release: release the references that others were sent with before any result is there.
        block: wait for results in a way that blocks the thread.
    """
    made: dict[int, Any] = {START: start, **dict(zip([GIVEN], cells))}
    wanted = sinks(graph)
    try:
        for number, node in enumerate(graph):
            made[number] = _send(node, made[node.left], made[node.right])
        if release:
            _release([made[number] for number in range(len(graph)) if number not in wanted])
        return [await _outcome(made[number], block) for number in wanted]
    finally:
        _release([made[number] for number in made if number >= 0])


def _send(node: Node, left: Any, right: Any) -> Any:
    if node.form == "receiver":
        return getattr(left.remote(), node.function)(_promise(right))
    call = remote if node.form == "reference" else rpc_async
    return call(node.at, GRAPH_FUNCTIONS[node.function], (_promise(left), _promise(right)))


def _promise(argument: Any) -> Any:
    return value(argument) if isinstance(argument, RRef) else argument


async def _outcome(result: Any, block: bool) -> int:
    try:
        if isinstance(result, Future):
            return outcome_of(result.wait() if block else await result)
        return outcome_of(result.to_here() if block else await result.to_here_async())
    except ProgramError as error:
        return outcome_of(error)


def _release(results: list[Any]) -> None:
    for each in results:
        if isinstance(each, RRef):
            each.release()
