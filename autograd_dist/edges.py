"""Edges for gradients of tensors that leave a worker: into our own graph, where calls of JAX are too, or into PyTorch's."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from ..core.extend import Edge, Tensor, gradient_edge
from ..rpc.extend import LibraryTensor, library_of
from .graph import ContextGraph

_lock = threading.Lock()


def as_tensor(value: Any) -> Tensor | None:
    """Return a tensor of ours, or a stand-in for a tensor of a library with gradients; ``None`` for everything else.

    Raises:
        TypeError: it is an array of a kind that cannot travel.
    """
    if isinstance(value, Tensor):
        return value
    if (library := library_of(value)) is None or (packed := library.pack(value)) is None:
        return None
    return LibraryTensor(library, value, packed)


def edge_of(graph: ContextGraph, tensor: Tensor) -> Edge | None:
    """Return where the gradient of a tensor that is sent goes on; ``None`` if its operations are not recorded now.

    Args:
        graph: the context's graph.
        tensor: a tensor of ours, or the stand-in for one of another library, that requires grad.
    """
    if type(tensor) is not LibraryTensor:
        return gradient_edge(tensor)
    if tensor.library.name != "torch":
        edge = tensor.library.edge(tensor.original)
        tensor._requires_grad = edge is not None
        return edge
    planner = graph.library_part or _make_planner(graph)
    edge = planner.edge(tensor.original)
    tensor._requires_grad = edge is not None
    return edge


def _make_planner(graph: ContextGraph) -> Any:
    with _lock:
        graph.library_part = graph.library_part or _planner_class()(graph.orders)
    return graph.library_part


@cache
def _planner_class() -> Any:
    from .torch_graph.planner import Planner  # it imports PyTorch, which is there if a tensor of it is

    return Planner
