"""Verification of a repeated operation: do its nodes have the gradients that those of the operation itself have?

The forward results were compared. The rules of a node may still depend on something that stand-ins have changed, as the form
of an index. So each node of the operation is run with some gradient, and the node in its place with the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..core.extend import ARRAYS, Array, Edge, Tensor
from .comparison import alike
from .errors import Unrecordable
from .stand_in import StandIn
from .tracer import Tracer

Ends: TypeAlias = "dict[tuple[int, int], Edge | None]"


def check_gradients(tracer: Tracer, real: Sequence[Tensor], shadows: Sequence[Tensor], ends: Ends) -> None:
    """Raise unless the new nodes of two results give the same gradients, bit by bit.

    Args:
        tracer: where the statements go; they are taken back.
        real: what an operation returned.
        shadows: what its repetition on stand-ins returned.
        ends: by (id of the node, slot), the edges of the operation's inputs, and in the recorded graph those in their places.

    Raises:
        Unrecordable: they differ.
    """
    mark = tracer.mark()
    try:
        for one, other in zip(real, shadows):
            _check(tracer, one._edge, other._edge, _chance(one._array), ends)
    finally:
        tracer.back(mark)


def _check(tracer: Tracer, real: Edge | None, shadow: Edge | None, gradient: Any, ends: Ends) -> None:
    if real is None or shadow is None or (id(real[0]), real[1]) in ends:
        if shadow != (None if real is None else ends.get((id(real[0]), real[1]))):
            raise Unrecordable("its repetition has another graph")
        return
    node, other = real[0], shadow[0]
    if type(node) is not type(other) or real[1] != shadow[1] or len(node.next_edges) != len(other.next_edges):
        raise Unrecordable("its repetition has another graph")
    if node._hooks is not None:
        raise Unrecordable(f"a hook is registered on {node.name()}")
    if node.tape:
        expected, found = node.pull(gradient, True), _pulled(tracer, other, gradient)
    else:
        given = [gradient if slot == real[1] else None for slot in range(node.num_inputs)]
        expected = node.apply(tuple(given))
        found = other.apply(tuple([None if each is None else tracer.outside(each) for each in given]))
    for edge, other_edge, one, two in zip(node.next_edges, other.next_edges, expected, found):
        if edge is not None and not same(two, one):
            raise Unrecordable("its repetition has other gradients")
        if edge is None or one is not None:
            _check(tracer, edge, other_edge, None if one is None else np.asarray(one), ends)


class _OnExamples:
    """Takes the place of a row that looks at elements: its rules get the examples of stand-ins."""

    def __init__(self, tracer: Tracer, row: Any) -> None:
        self._tracer, self._row = tracer, row

    def pull(self, xp: Any, grad: Any, arguments: Any, edges: Any) -> Sequence[Any]:
        results: Sequence[Any] = self._row.pull(ARRAYS, *self._tracer.examples((grad, tuple(arguments))), edges)
        return results


def _pulled(tracer: Tracer, node: Any, gradient: Array) -> Sequence[Any]:
    """Return what a node over stand-ins gives; if its rules look at elements, a replay calls them as they are."""
    try:
        gradients: Sequence[Any] = node.pull(tracer.outside(gradient), True)
    except Exception:
        row = getattr(node, "row", None)
        if row is None or getattr(node, "computed", None) is not None:
            raise
        node.row = _OnExamples(tracer, row)
        try:
            gradients = node.pull(gradient, True)
        finally:
            node.row = row
    return gradients


def same(found: Any, expected: Any) -> bool:
    """Return whether a gradient, which may be a stand-in, is the expected one, bit by bit."""
    if found is None or expected is None:
        return found is expected
    return alike(np.asarray(found._example if type(found) is StandIn else found), np.asarray(expected))


def _chance(like: Array) -> Array:
    # Not of chance in truth: to draw numbers would change the state of a generator.
    return np.asarray(np.sin(1.0 + np.arange(like.size))).reshape(like.shape).astype(like.dtype)
