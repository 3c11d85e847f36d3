"""``TracedRow``: the gradient rules of an operation, recorded call by call if they allow it, or else as one statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.extend import ARRAYS, Edges, Node, Tensor
from .errors import Unrecordable
from .tracer import Tracer
from .verification import same


class TracedRow:
    """Takes the place of a node's row while a backward pass is recorded.

    Args:
        tracer: gets the statements.
        row: the row.
        by_hand: whether its node holds a function for the gradients that knows stand-ins of the forward pass.
    """

    def __init__(self, tracer: Tracer, row: Any, by_hand: bool = False) -> None:
        self._tracer, self._row, self._by_hand = tracer, row, by_hand
        self.name, self.view, self.rules = row.name, row.view, row.rules

    def of(self, dtype: Any) -> TracedRow:
        """Return the row for results of another dtype."""
        return TracedRow(self._tracer, self._row.of(dtype))

    def pull(self, xp: SimpleNamespace, grad: Any, arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
        """Return the gradients of the inputs, as stand-ins."""
        if xp is not ARRAYS:
            raise Unrecordable("gradients of gradients are not recorded")
        tracer = self._tracer
        if self._by_hand:  # it cannot run on examples; it was verified when the operation was repeated
            tracer.mark()
            return self._repeated(grad, arguments, edges)
        examples = self._row.pull(ARRAYS, *tracer.examples((grad, tuple(arguments))), edges)
        examples = [None if each is None or edge is None else np.asarray(each) for each, edge in zip(examples, edges)]
        mark = tracer.mark()
        try:
            results = self._repeated(grad, arguments, edges)
            if not all(map(same, results, examples)):
                raise Unrecordable("its repetition gave something else")
            return results
        except Exception:  # a rule may do anything with what is no array
            tracer.back(mark)
        return tracer.call_many(pull_row, (self._row, grad, tuple(arguments), _needed(edges)), examples)

    def _repeated(self, grad: Any, arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
        results = self._row.pull(ARRAYS, grad, arguments, edges)
        return [None if edge is None else each for each, edge in zip(results, edges)]


def pull_row(row: Any, grad: Any, arguments: tuple[Any, ...], edges: Edges) -> Sequence[Any]:
    """Return what the rules of a row return on arrays."""
    return row.pull(ARRAYS, grad, arguments, edges)


def trace_rows(tracer: Tracer, results: Sequence[Tensor], seen: set[Node]) -> None:
    """Let the nodes that an operation made record what their rules do.

    Args:
        tracer: gets the statements.
        results: what the operation returned.
        seen: nodes that were made before; the new ones are added.
    """
    todo = [each._edge[0] for each in results if each._edge is not None]
    while todo:
        node: Any = todo.pop()
        if node not in seen:
            seen.add(node)
            if hasattr(node, "row"):
                node.row = TracedRow(tracer, node.row, getattr(node, "computed", None) is not None)
            todo.extend(edge[0] for edge in node.next_edges if edge is not None)


def check_traced(roots: Iterable[Node], seen: set[Node]) -> None:
    """Raise unless all nodes below ``roots`` were verified, and record what their rules do.

    Args:
        roots: nodes where a backward pass starts.
        seen: nodes that were.

    Raises:
        Unrecordable: a change in place of a view has made others.
    """
    todo, met = list(roots), set[Node]()
    while todo:
        node = todo.pop()
        if node not in met:
            met.add(node)
            if node not in seen and hasattr(node, "row"):
                raise Unrecordable("a view of a recorded tensor is changed in place")
            todo.extend(edge[0] for edge in node.next_edges if edge is not None)


_NODE = Node()


def _needed(edges: Edges) -> Edges:
    return tuple(None if edge is None else (_NODE, 0) for edge in edges)
