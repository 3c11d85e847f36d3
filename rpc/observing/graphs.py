"""Directed graphs of waits: which nodes can still go on, cycles among those that cannot, and the ways to a node.

A node goes on when all nodes that it waits for do, or one of them if it waits for any. The functions know no workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

N = TypeVar("N", bound=Hashable)
Edges = Mapping[N, Sequence[N]]


def reversed_edges(edges: Edges[N]) -> dict[N, list[N]]:
    """Return, for each node, the nodes that wait for it."""
    found: dict[N, list[N]] = {node: [] for node in edges}
    for node, nexts in edges.items():
        for each in dict.fromkeys(nexts):
            found.setdefault(each, []).append(node)
    return found


def blocked(edges: Edges[N], of_any: Collection[N], ends: Iterable[N]) -> set[N]:
    """Return the nodes that cannot go on if only ``ends`` can by themselves.

    Args:
        edges: for each node, those that it waits for.
        of_any: nodes that wait for one of theirs, not for all.
        ends: nodes that go on by themselves.
    """
    before = reversed_edges(edges)
    left = {node: 1 if node in of_any else len(set(nexts)) for node, nexts in edges.items()}
    free, queue = set(ends), deque(ends)
    while queue:
        for node in before.get(queue.popleft(), []):
            left[node] -= 1
            if left[node] <= 0 and node not in free:
                free.add(node)
                queue.append(node)
    return {node for node in edges if node not in free}


def cycles(edges: Edges[N], among: Collection[N]) -> list[list[N]]:
    """Return a shortest cycle of each group of nodes that reach one another.

    Args:
        edges: for each node, those that it waits for.
        among: nodes to look at.
    """
    inner = {node: [each for each in edges[node] if each in among] for node in edges if node in among}
    found = []
    for group in _components(inner):
        members = set(group)
        if found_cycle := _shortest({node: [each for each in inner[node] if each in members] for node in group}):
            found.append(found_cycle)
    return found


def ways(edges: Edges[N], to: N) -> dict[N, N | None]:
    """Return the nodes from which a way leads to a node, by distance, each with the next node on a shortest way."""
    return _search(reversed_edges(edges), to)


def _search(before: Mapping[N, Sequence[N]], to: N) -> dict[N, N | None]:
    found: dict[N, N | None] = {to: None}
    queue = deque([to])
    while queue:
        node = queue.popleft()
        for each in before.get(node, ()):
            if each not in found:
                found[each] = node
                queue.append(each)
    return found


def follow(nexts: Mapping[N, N | None], node: N) -> list[N]:
    """Return the way from a node that ``ways`` has found."""
    way: list[N] = []
    step: N | None = node
    while step is not None:
        way.append(step)
        step = nexts[step]
    return way


def _shortest(edges: Edges[N]) -> list[N]:
    """Return a shortest cycle through the first node that has one."""
    before = reversed_edges(edges)
    for node in edges:
        back = _search(before, node)
        nexts = [each for each in edges[node] if each in back]
        if nexts:
            return min(([node, *follow(back, each)[:-1]] for each in nexts), key=len)
    return []


def _components(edges: Edges[N]) -> list[list[N]]:
    """Return the strongly connected components (Kosaraju), each in the order of ``edges``."""
    order = _finished(edges)
    before, taken = reversed_edges(edges), set[N]()
    components = []
    for node in reversed(order):
        if node not in taken:
            members = _reached(before, node, taken)
            components.append([each for each in edges if each in members] if len(members) > 1 else list(members))
    return components


def _finished(edges: Edges[N]) -> list[N]:
    order: list[N] = []
    seen: set[N] = set()
    for root in edges:
        stack = [(root, iter(edges[root]))] if root not in seen else []
        seen.add(root)
        while stack:
            node, nexts = stack[-1]
            step = next((each for each in nexts if each not in seen), None)
            if step is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(step)
                stack.append((step, iter(edges[step])))
    return order


def _reached(before: Mapping[N, Sequence[N]], root: N, taken: set[N]) -> set[N]:
    members, queue = {root}, [root]
    taken.add(root)
    while queue:
        for each in before.get(queue.pop(), ()):
            if each not in taken:
                taken.add(each)
                members.add(each)
                queue.append(each)
    return members
