"""Walk down PyTorch's graph. Only this module and ``parts.py`` know how PyTorch's nodes look."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from ...rpc.extend import library_of

TorchEdge: TypeAlias = tuple[Any, int]  # node of PyTorch, number of its output
LEAF_NODE = type(get_gradient_edge(torch.empty(0, requires_grad=True)).node)
ARRIVED_NODE: Any = library_of(torch.empty(0)).arrived_node  # type: ignore[union-attr]


class Walked(NamedTuple):
    """Result of a walk: the edges at which it ended, and the nodes that it went through."""

    ends: dict[TorchEdge, None]
    nodes: set[Any]


def edge_of(tensor: Any) -> TorchEdge:
    """Return the node and output of a tensor that requires grad."""
    edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def gradient_edges(edges: Iterable[TorchEdge]) -> list[GradientEdge]:
    """Return edges in the form that ``torch.autograd.grad`` takes."""
    return [GradientEdge(node, number) for node, number in edges]


def is_end(edge: TorchEdge) -> bool:
    """Return whether a graph of this worker ends at an edge: at a leaf, or a tensor that arrived."""
    return isinstance(edge[0], (LEAF_NODE, ARRIVED_NODE))


def arrived(edge: TorchEdge) -> Any:
    """Return node and slot of our graph at which the gradient of a tensor that arrived goes on; ``None`` for others."""
    return edge[0].edge if isinstance(edge[0], ARRIVED_NODE) else None


def walk(starts: Iterable[TorchEdge], cuts: Collection[TorchEdge]) -> Walked:
    """Walk down from ``starts`` to the ends of the graph, and not below ``cuts``."""
    found = Walked({}, set())
    stack = list(starts)
    while stack:
        edge = stack.pop()
        if edge in cuts or is_end(edge):
            found.ends[edge] = None
        elif edge[0] not in found.nodes:
            found.nodes.add(edge[0])
            stack += [below for below in edge[0].next_functions if below[0] is not None]
    return found
