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
    (node, _), *_ = root.next_edges or ((None, 0),)
    if type(node) is not ReplayNode or not _is_usual(root, node, leaving):
        return None
    given = [None] * node.num_inputs
    for (_, slot), gradient in zip(root.next_edges, gradients):
        given[slot] = gradient
    results = node.apply(tuple(given))
    node.release()
    found: dict[int, Any] = {}
    arguments = [None] * leaving.num_inputs
    for edge, gradient in zip(node.next_edges, results):
        if edge is None or gradient is None:
            continue
        if isinstance(gradient, np.generic):
            gradient = np.asarray(gradient)
        if edge[0] is leaving:
            arguments[edge[1]] = gradient
        else:
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
