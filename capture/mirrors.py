"""``MirrorNode``: a node of a recorded graph in the place of one that an operation makes when it runs as a whole.

An operation that cannot be recorded call by call runs as it is in each replay, and makes its nodes. A backward pass over
the recorded graph meets their mirrors, one for each node and joined in the same way, so gradients are added in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.extend import Edge, Node, Tensor
from .errors import Unrecordable
from .tracer import Tracer
from .trees import tensors_of
from .values import Storage, Value


class MirrorNode(Node):
    """Stands for a node while it is recorded what a backward pass does.

    Args:
        tracer: gets the statements.
        real: the node.
        value: names the node in the program.
        uses: storages of what the node saved.
    """

    __slots__ = ("_real", "_tracer", "_uses", "_value")

    def __init__(self, tracer: Tracer, real: Node, value: Value, uses: frozenset[Storage]) -> None:
        super().__init__((), real.num_inputs)
        self._tracer, self._real, self._value, self._uses = tracer, real, value, uses

    def apply(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Record that the node runs."""
        real = self._real
        if real._hooks is not None:
            raise Unrecordable(f"a hook is registered on {real.name()}")
        if real.tape and grads[0] is None:
            return (None,) * len(self.next_edges)
        tracer = self._tracer
        given = [None if each is None else np.asarray(each) for each in tracer.examples(grads)]
        results = real.pull(given[0], True) if real.tape else real.apply(tuple(given))
        arrays = [None if each is None else np.asarray(each) for each in results]
        return tracer.call_many(run_node, (self._value, grads, tracer.keep), arrays, self._uses)


def run_node(node: Node, grads: tuple[Any, ...], keep: bool) -> Sequence[Any]:
    """Run a node on arrays, and return the gradients of its inputs.

    Args:
        node: the node.
        grads: the gradients of its outputs.
        keep: whether it keeps what it saved.
    """
    if node.tape:
        return node.pull(grads[0], keep)
    results = node.apply(grads)
    if not keep:
        node.release()
    return results


def node_at(result: Any, place: int, path: tuple[int, ...]) -> Node:
    """Return a node that an operation made.

    Args:
        result: what the operation returned.
        place: the number of the tensor in it to start from.
        path: numbers of the edges from there.
    """
    edge: Any = tensors_of(result)[place]._edge
    for index in path:
        edge = edge[0].next_edges[index]
    node: Node = edge[0]
    return node


def mirrored(
    tracer: Tracer,
    results: Sequence[Tensor],
    value: Value,
    ends: dict[tuple[int, int], Edge | None],
    uses: frozenset[Storage],
) -> list[Edge | None]:
    """Return an edge of the recorded graph for each result of an operation that runs as a whole.

    Args:
        tracer: gets the statements.
        results: what the operation returned.
        value: the same in the program.
        ends: by (id of the node, slot), the edges of its inputs, and of the tensors of the recorded graph for them.
        uses: storages of the operation's arguments and results.

    Raises:
        Unrecordable: the graph leads to nodes that are neither of this operation nor its inputs.
    """
    made: dict[int, MirrorNode] = {}

    def mirror(real: Node, place: int, path: tuple[int, ...]) -> MirrorNode:
        found = made.get(id(real))
        if found is not None:
            return found
        if real.num_inputs == 1 and not real.next_edges and real.tape and hasattr(real, "variable"):
            raise Unrecordable("an operation reads a tensor that requires grad and is not among its arguments")
        name = tracer.value(storages=frozenset())
        tracer.effect(node_at, (value, place, path), name, uses)
        found = made[id(real)] = MirrorNode(tracer, real, name, uses)
        found.next_edges = tuple(
            [
                None if edge is None else follow(edge, place, (*path, index))
                for index, edge in enumerate(real.next_edges)
            ]
        )
        return found

    def follow(edge: Edge, place: int, path: tuple[int, ...]) -> Edge | None:
        key = id(edge[0]), edge[1]
        return ends[key] if key in ends else (mirror(edge[0], place, path), edge[1])

    edges: list[Edge | None] = []
    for place, result in enumerate(results):
        if result._edge is None:
            edges.append(None)
        else:
            edges.append((mirror(result._edge[0], place, ()), result._edge[1]))
    return edges
