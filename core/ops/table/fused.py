"""``fused``: an operation whose forward and backward passes are written by hand on arrays, in one node.

It is for operations that would be hundreds of nodes, as a layer of an LSTM. A backward pass that is itself recorded
*replays* the operation by ordinary ones, and differentiates those. So does one whose inputs ``saved_tensors_hooks`` packed:
then nothing else is kept of the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from ...array_like import as_array
from ...autograd.edges import gradient_edge
from ...autograd.grad_mode import GradMode
from ...autograd.gradients import grad as gradients
from ...autograd.node import Edges
from ...tensors import Tensor
from ...types import Array
from ..shape.reshaping import view_as
from .nodes import keep, keep_result, modified
from .outputs import OutputsNode
from .rows import ARRAYS, Row

# Takes the gradients of the outputs (None: not used) and whether each input needs one; returns those of the inputs.
Backward: TypeAlias = Callable[[Sequence[Array | None], Sequence[bool]], Sequence[Array | None]]
Replay: TypeAlias = Callable[..., Sequence[Tensor]]


def fused(
    name: str, inputs: Sequence[Tensor | None], outputs: Sequence[Array], backward: Backward, replay: Replay
) -> tuple[Tensor, ...]:
    """Return tensors over ``outputs``, recorded as the results of one operation on ``inputs``.

    Args:
        name: name of the operation; its node is called ``NameBackward``.
        inputs: the tensors that the operation was called with; ``None`` for those left out.
        outputs: results of the operation, all floating-point.
        backward: function that computes gradients; it holds the values of the forward pass that it needs; see ``Backward``.
        replay: the operation made of other operations: a function from ``inputs`` to tensors like ``outputs``.
    """

    # The rule holds neither its row, which would be a cycle, nor the inputs, which are freed with the node's saved values.
    node_name, count = f"{name}Backward", len(inputs)

    def pull(xp: SimpleNamespace, grads: Sequence[Any], arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
        given, computed = arguments[:count], arguments[count:]
        if xp is not ARRAYS:
            return _replayed(replay, given, grads, edges, create_graph=True)
        if computed:
            ((by_hand, results),) = computed
            for entry in results:
                if entry[2][0] != entry[3]:
                    raise modified(node_name, entry)
            return by_hand(grads, [edge is not None for edge in edges])
        leaves = [None if array is None else Tensor(array, edge is not None) for array, edge in zip(given, edges)]
        tensors = [None if grad is None else Tensor(np.asarray(grad)) for grad in grads]
        found = _replayed(replay, leaves, tensors, edges, create_graph=False)
        return [None if each is None else each._array for each in found]

    row = Row(name, pull=pull)
    row.name = node_name
    edges = tuple(None if tensor is None else gradient_edge(tensor) for tensor in inputs)
    saved = tuple(None if tensor is None else keep(tensor) for tensor in inputs)
    node = OutputsNode(row, edges, len(outputs), saved)
    results = tuple(Tensor(as_array(output), True, (node, slot)) for slot, output in enumerate(outputs))
    node.computed = backward, [keep_result(result) for result in results]
    return results


def _replayed(
    replay: Replay, tensors: Sequence[Any], grads: Sequence[Any], edges: Edges, create_graph: bool
) -> Sequence[Tensor | None]:
    with GradMode(True):
        # Aliases: if one input was computed from another, no gradient flows between them here.
        inputs = [None if tensor is None else view_as(tensor, tensor) for tensor in tensors]
        results = replay(*inputs)
    wanted = [alias for alias, edge in zip(inputs, edges) if alias is not None and edge is not None]
    used = [(output, grad) for output, grad in zip(results, grads) if grad is not None]
    outputs, given = zip(*used)
    found = iter(gradients(outputs, wanted, given, create_graph=create_graph, allow_unused=True))
    return [None if edge is None else next(found) for edge in edges]
