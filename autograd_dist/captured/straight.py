"""``run_straight``: the backward pass of one replayed call, without the counts of a ``GraphTask``.

The usual graph of a call has one node, its replay, between its results and the ends: leaves of this worker, and arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...capture.extend import Leaving, ReplayNode
from ...core.extend import AccumulateGrad
from ..graph import SendNode


def run_straight(root: SendNode, leaving: Leaving, gradients: Sequence[Any]) -> dict[int, Any] | None:
    """Run the pass; return gradients of leaves by their ids, or ``None`` if the graph has another form: then nothing ran.

    Args:
        root: node of the results.
        leaving: gets the gradients of the arguments.
        gradients: of the results.
    """
    first = root.next_edges[0] if root.next_edges else None
    node = None if first is None else first[0]
    if not isinstance(node, ReplayNode) or not _is_usual(root, node, leaving):
        return None
    given: list[Any] = [None] * node.num_inputs
    for edge, gradient in zip(root.next_edges, gradients):
        if edge is not None:
            given[edge[1]] = gradient
    results = node.apply(tuple(given))
    node.release()
    found: dict[int, Any] = {}
    arguments: list[Any] = [None] * leaving.num_inputs
    for edge, gradient in zip(node.next_edges, results):
        if edge is None or gradient is None:
            continue
        if isinstance(gradient, np.generic):
            gradient = np.asarray(gradient)
        if edge[0] is leaving:
            arguments[edge[1]] = gradient
        elif isinstance(edge[0], AccumulateGrad):
            found[id(edge[0].variable)] = gradient
    leaving.apply(tuple(arguments))
    return found


def _is_usual(root: SendNode, node: ReplayNode, leaving: Leaving) -> bool:
    """Return whether all results come from one replay, and each of its gradients goes to an end of its own, without hooks."""
    for result in root.next_edges:
        if result is None or result[0] is not node:
            return False
    ends = [edge for edge in node.next_edges if edge is not None]
    for end, _ in ends:
        if end is not leaving and (type(end) is not AccumulateGrad or end._hooks or end.variable._hooks):
            return False
    return len({*root.next_edges}) == root.num_inputs and len({*ends}) == len(ends) and node._hooks is None
