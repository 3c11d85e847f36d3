"""How tensors and nodes meet: the edge of a tensor, and a tensor on a node.

These are for extenders. Distributed autograd, for one, cuts the graph here: it asks for the edges of the tensors it
sends, and attaches the ones it received to a node of its own.
"""

from __future__ import annotations

from ..tensor import Tensor
from ..types import Array
from .node import Edge, Node, accumulator_of


def gradient_edge(tensor: Tensor) -> Edge | None:
    """Where the gradient of ``tensor`` goes.

    Its ``grad_fn`` and slot; for a leaf that requires grad its ``AccumulateGrad``; ``None`` if it requires no grad.
    """
    if tensor._edge is not None:
        return tensor._edge
    return (accumulator_of(tensor), 0) if tensor._requires_grad else None


def attach(array: Array, node: Node, slot: int = 0) -> Tensor:
    """A tensor over ``array`` whose ``grad_fn`` is ``node``: it is the node's output number ``slot``."""
    return Tensor(array, True, (node, slot))
