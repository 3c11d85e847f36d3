"""Causes of waits, concluded from observations: deadlocks, and ends of chains of waits, with one chain of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from .ends import SEVERITIES, End, end_of
from .explanation import Cause, Explanation
from .graphs import blocked, cycles, follow, ways
from .steps import steps_of
from .waits import WaitGraph, WaitNode, wait_graph

if TYPE_CHECKING:
    from .records import Observation

MOST_CAUSES = 20
MOST_ENDS = 100  # that are looked at: each takes a search in the graph
MOST_STEPS = 24


def explain(observations: Iterable[Observation], about: Sequence[str] = ()) -> Explanation:
    """Return why the workers of a job wait. A pure function of their observations, in any order.

    Args:
        observations: one of each worker, as ``rpc.observe`` returns them.
        about: only what concerns these workers, or keeps them waiting; empty for all.
    """
    graph = wait_graph(observations)
    ends, left_out = _ends(graph)
    found = [*_deadlocks(graph), *ends]
    if about:
        found = [each for each in found if not set(about).isdisjoint([*each.workers, *each.waiting])]
    found.sort(key=_order)
    return Explanation(found[:MOST_CAUSES], list(graph.seen.workers), left_out + max(len(found) - MOST_CAUSES, 0))


def _order(cause: Cause) -> tuple[Any, ...]:
    at = cause.at
    place = (at.file, at.line) if at else ("", 0)
    return SEVERITIES.index(cause.severity), -len(cause.waiting), -cause.threads, cause.worker, place, cause.text


def _deadlocks(graph: WaitGraph) -> list[Cause]:
    # An end that is stuck is no deadlock; so all ends count as going on.
    ends = [node for node, nexts in graph.edges.items() if not nexts]
    stuck = blocked(graph.edges, graph.of_any, ends)
    return [_deadlock(graph, cycle) for cycle in cycles(graph.edges, stuck)]


def _deadlock(graph: WaitGraph, cycle: list[WaitNode]) -> Cause:
    first = min(range(len(cycle)), key=lambda index: _first(graph, cycle[index]))
    cycle = cycle[first:] + cycle[:first]
    steps = steps_of(graph, [*cycle, cycle[0]])[:MOST_STEPS]
    names = list(dict.fromkeys([step.worker for step in steps] or [worker_of(graph, node) for node in cycle]))
    waiting = _waiting(graph, list(ways(graph.edges, cycle[0])), names)
    at = next((step.at for step in steps if step.at), None)
    text = f"deadlock {_of(names)}: each step of the cycle waits for the next, and the last for the first"
    return Cause("deadlock", "deadlock", names[0], names, text, at, len(steps), waiting, steps)


def _first(graph: WaitGraph, node: WaitNode) -> tuple[bool, str, WaitNode]:
    return node.kind != "thread", worker_of(graph, node), node


def _of(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"in {names[0]!r}"
    return f"over {', '.join(map(repr, names[:-1]))} and {names[-1]!r}"


def _ends(graph: WaitGraph) -> tuple[list[Cause], int]:
    """Return the ends, those at one place together, and how many are left out because there are very many."""
    groups: dict[tuple[Any, ...], list[tuple[WaitNode, End]]] = {}
    for node, nexts in graph.edges.items():
        if not nexts:
            end = end_of(graph.seen, node)
            groups.setdefault((end.kind, end.worker, end.at, end.text), []).append((node, end))
    worst = sorted(groups.values(), key=_rank)
    return [_end(graph, group) for group in worst[:MOST_ENDS]], max(len(worst) - MOST_ENDS, 0)


def _rank(group: list[tuple[WaitNode, End]]) -> tuple[int, int, WaitNode]:
    return SEVERITIES.index(group[0][1].severity), -len(group), min(node for node, _ in group)


def _end(graph: WaitGraph, group: list[tuple[WaitNode, End]]) -> Cause:
    node, end = min(group, key=itemgetter(0))
    before = ways(graph.edges, node)
    chain = steps_of(graph, follow(before, _farthest(before)))
    waiting = _waiting(graph, list(before), [end.worker])
    return Cause(
        end.kind, end.severity, end.worker, [end.worker], end.text, end.at, len(group), waiting, chain[:MOST_STEPS]
    )


def _farthest(before: dict[WaitNode, WaitNode | None]) -> WaitNode:
    """Return the node that is farthest from the end; of several, a thread, because it has a place in the program."""
    steps: dict[WaitNode, int] = {}
    for node, following in before.items():  # by distance
        steps[node] = 0 if following is None else steps[following] + 1
    return max(before, key=lambda node: (steps[node], node.kind == "thread"))


def _waiting(graph: WaitGraph, nodes: Iterable[WaitNode], without: Sequence[str]) -> list[str]:
    return sorted({worker_of(graph, node) for node in nodes} - set(without))


def worker_of(graph: WaitGraph, node: WaitNode) -> str:
    """Return the worker of a node."""
    if node.kind == "thread":
        return graph.seen.threads[node].best()[0]
    if node.kind == "lock":
        return next((name for name in graph.seen.workers if graph.seen.process(name) == node.place), node.place)
    return node.place
