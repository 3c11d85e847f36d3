"""Conversion between tensors and edges of the graph: the edge of a tensor, and a tensor as the output of a node.

These are for extenders. Distributed autograd cuts the graph here: it asks for the edges of the tensors that it sends,
and attaches the received tensors to a node of its own.
"""

from __future__ import annotations

from ..tensors import Tensor
from ..types import Array
from .accumulate import accumulator_of
from .node import Edge, Node


def gradient_edge(tensor: Tensor) -> Edge | None:
    """Return the ``(node, slot)`` that the gradient of ``tensor`` goes to; ``None`` if it requires no grad.

    The node is the tensor's ``grad_fn``, or for a leaf its ``AccumulateGrad``.
    """
    if tensor._edge is not None:
        return tensor._edge
    return (accumulator_of(tensor), 0) if tensor._requires_grad else None


def attach(array: Array, node: Node, slot: int = 0) -> Tensor:
    """Return a tensor over ``array`` that is output number ``slot`` of ``node``.

    Args:
        array: the elements; not copied.
        node: the tensor's ``grad_fn``.
        slot: an index from 0 to ``node.num_inputs - 1``.
    """
    return Tensor(array, True, (node, slot))
