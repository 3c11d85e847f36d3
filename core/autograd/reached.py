"""Search of the graph: which inputs a result depends on, and whether on anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..tensors import Tensor
from .edges import gradient_edge
from .node import Node


class Reached(NamedTuple):
    """Result of ``reached``.

    Attributes:
        inputs: whether an output depends on one of the inputs.
        others: whether an output depends on another end of the graph, or through an input on what is below it.
    """

    inputs: bool
    others: bool


def reached(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Reached:
    """Return what the graph above ``inputs`` leads to, from ``outputs`` down."""
    ends = {edge[0]: tensor.is_leaf for tensor in inputs if (edge := gradient_edge(tensor)) is not None}
    stack = [edge[0] for tensor in outputs if (edge := gradient_edge(tensor)) is not None]
    seen: set[Node] = set(stack)
    found = others = False
    while stack:
        node = stack.pop()
        below = [edge[0] for edge in node.next_edges if edge is not None]
        if node in ends:
            found = True
            others = others or not ends[node]
            continue
        others = others or not below
        stack += [each for each in below if each not in seen]
        seen.update(below)
    return Reached(found, others)
