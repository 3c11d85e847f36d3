"""Walk down PyTorch's graph. Only this module and ``nodes.py`` know how PyTorch's nodes look."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.autograd.variable import Variable

from ...rpc.extend import library_of

TorchEdge: TypeAlias = tuple[Any, int]  # node of PyTorch, number of its output
LEAF_NODE = type(get_gradient_edge(torch.empty(0, requires_grad=True)).node)
ARRIVED_NODE: Any = library_of(torch.empty(0)).arrived_node  # type: ignore[union-attr]
run_backward: Any = Variable._execution_engine.run_backward
ENDS = frozenset((LEAF_NODE, ARRIVED_NODE))  # classes of the nodes at which a graph of this worker ends


class Walked(NamedTuple):
    """Result of a walk: the edges at which it ended, and the nodes that it went through."""

    ends: dict[TorchEdge, None]
    nodes: set[Any]


def leaf_edge(tensor: Any) -> TorchEdge:
    """Return the node and output of a leaf that requires grad."""
    edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def hooks_of(tensor: Any) -> dict[int, Any]:
    """Return the table of the hooks of a tensor that is no leaf: also of later hooks, and for as long as its node lives.

    PyTorch makes the table with the first hook. Here it is made before, because the tensor may not be there any more when it is
    asked whether there are hooks.
    """
    with torch._C.DisableTorchFunctionSubclass():
        if tensor._backward_hooks is None:
            tensor._backward_hooks = OrderedDict()
            tensor.grad_fn._register_hook_dict(tensor)
        hooks: dict[int, Any] = tensor._backward_hooks
    return hooks


def differentiate(
    outputs: tuple[GradientEdge, ...], grads: tuple[torch.Tensor, ...], inputs: tuple[GradientEdge, ...], keep: bool
) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of ``inputs``; ``None`` for those that were not used.

    ``torch.autograd.grad`` does the same, and checks shapes before, as PyTorch's engine does. For that it imports SymPy, which
    takes some tenths of a second. So the engine is called here, in this thread: it has others only for GPUs.

    Args:
        outputs: where the gradients come in.
        grads: those gradients.
        inputs: where they are to go.
        keep: keep what the nodes saved.
    """
    found: tuple[torch.Tensor | None, ...] = run_backward(
        outputs, grads, keep, False, inputs, allow_unreachable=True, accumulate_grad=False
    )
    return found


def walk(starts: Iterable[TorchEdge], cuts: Collection[TorchEdge]) -> Walked:
    """Walk down from ``starts`` to the ends of the graph, and not below ``cuts``."""
    ends: dict[TorchEdge, None] = {}
    nodes: set[Any] = set()
    stack = list(starts)
    while stack:
        edge = stack.pop()
        node = edge[0]
        if type(node) in ENDS or (cuts and edge in cuts):
            ends[edge] = None
        elif node not in nodes and node is not None:
            nodes.add(node)
            stack += node.next_functions
    return Walked(ends, nodes)
