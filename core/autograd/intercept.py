"""The rare stops of a backward pass: hooks, and gradients captured for ``grad(..., inputs)``.

The engine comes here only for nodes with hooks and in passes with ``inputs``. Hooks see and return tensors; gradients
of ordinary passes are arrays, so they are wrapped on the way in and unwrapped on the way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AutogradError
from ..tensor import Tensor
from .edges import gradient_edge
from .hooks import HookTable, NodeHooks
from .node import AccumulateGrad, Node

if TYPE_CHECKING:
    from .engine import GraphTask


class Captures:
    """Which gradients a pass shall capture, and which nodes lead to them."""

    __slots__ = ("_needed", "_targets")

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self._targets: dict[Node, list[tuple[int, int]]] = {}  # node -> (slot, index of the input)
        self._needed: set[Node] | None = None
        for index, tensor in enumerate(inputs):
            edge = gradient_edge(tensor)
            if edge is None:
                raise AutogradError(f"inputs[{index}] does not require grad, so it can have no gradient")
            self._targets.setdefault(edge[0], []).append((edge[1], index))

    def prepare(self, nodes: Iterable[Node]) -> None:
        """Find, once, the nodes above the targets: only those need to compute."""
        if self._needed is not None:
            return
        parents: dict[Node, list[Node]] = {}
        for node in nodes:
            for edge in node.next_edges:
                if edge is not None:
                    parents.setdefault(edge[0], []).append(node)
        self._needed = set()
        stack = list(self._targets)
        while stack:
            for parent in parents.get(stack.pop(), ()):
                if parent not in self._needed:
                    self._needed.add(parent)
                    stack.append(parent)

    def concerns(self, node: Node) -> bool:
        """Whether the node's gradient is captured or leads to one that is."""
        return node in self._targets or self.needs(node)

    def needs(self, node: Node) -> bool:
        """Whether the node must compute because a captured gradient lies below it."""
        return self._needed is not None and node in self._needed

    def take(self, task: GraphTask, node: Node, grads: list[Any]) -> None:
        """Store the node's incoming gradients that were asked for."""
        for slot, index in self._targets.get(node, ()):
            task.captured[index] = grads[slot]


def before(task: GraphTask, node: Node, grads: list[Any] | None) -> tuple[list[Any] | None, bool]:
    """Hooks and captures in front of ``node``: the gradients to go on with, and whether the node shall run."""
    captures = task._captures
    if captures is not None and not captures.concerns(node):
        return None, False
    values = [None] * node.num_inputs if grads is None else [as_array(grad) for grad in grads]
    if node._hooks is not None:
        values = _run_hooks_before(task, node, node._hooks, values)
    if captures is not None:
        if isinstance(node, AccumulateGrad):
            values = [leaf_hooks(task, node.variable, values[0])]
        captures.take(task, node, values)
    missing = all(value is None for value in values)
    return None if missing else values, captures is None or captures.needs(node)


def after(task: GraphTask, node: Node, results: Sequence[Any], grads: list[Any] | None) -> Sequence[Any]:
    """Hooks behind ``node``: the gradients of its inputs to go on with."""
    assert node._hooks is not None
    outputs = tuple(to_tensor(grad) for grad in (grads or [None] * node.num_inputs))
    inputs = tuple(to_tensor(grad) for grad in results)
    for hook in node._hooks.after.calls():
        inputs = _replaced(hook(inputs, outputs), inputs, f"a hook of {node.name()}")
    return [_back(task, grad) for grad in inputs]


def leaf_hooks(task: GraphTask, leaf: Tensor, grad: Any) -> Any:
    """The hooks that were registered on a leaf tensor."""
    hooks = leaf._hooks
    return grad if hooks is None else _run_tensor_hooks(task, hooks.tensor, 0, grad)


def after_leaf(node: AccumulateGrad) -> None:
    """The hooks that run once a leaf's gradient has been delivered."""
    if node._hooks is not None:
        for hook in node._hooks.after.calls():
            hook((), (node.variable._grad,))
    if node.variable._hooks is not None:
        for hook in node.variable._hooks.after.calls():
            hook(node.variable)


def to_tensor(grad: Any) -> Any:
    """A tensor over ``grad``; ``None`` and tensors stay what they are."""
    return grad if grad is None or isinstance(grad, Tensor) else Tensor(np.asarray(grad))


def to_array(grad: Any) -> Any:
    """The array of ``grad``; ``None`` and sparse tensors stay what they are."""
    if isinstance(grad, Tensor):
        return grad if grad.is_sparse else grad._array
    return None if grad is None else np.asarray(grad)


def as_array(grad: Any) -> Any:
    """A NumPy scalar made a 0-d array; arrays, tensors and ``None`` stay what they are."""
    return np.asarray(grad) if isinstance(grad, np.generic) else grad


def _run_hooks_before(task: GraphTask, node: Node, hooks: NodeHooks, values: list[Any]) -> list[Any]:
    for slot, value in enumerate(values):
        values[slot] = _run_tensor_hooks(task, hooks.tensor, slot, value)
    for slot, reference in hooks.retained.items():
        tensor = reference()
        if tensor is not None and values[slot] is not None:
            tensor._grad = to_tensor(values[slot] if task.create_graph else _back(task, to_tensor(values[slot])))
    if hooks.before:
        tensors = tuple(to_tensor(value) for value in values)
        for hook in hooks.before.calls():
            tensors = _replaced(hook(tensors), tensors, f"a prehook of {node.name()}")
        values = [_back(task, tensor) for tensor in tensors]
    return values


def _run_tensor_hooks(task: GraphTask, table: HookTable, slot: int, grad: Any) -> Any:
    if grad is None or not table:
        return grad
    value = to_tensor(grad)
    for wanted_slot, hook in table.calls():
        if wanted_slot == slot:
            result = hook(value)
            if result is not None:
                value = _checked(result, value)
    return _back(task, value)


def _checked(result: Any, grad: Tensor) -> Tensor:
    if not isinstance(result, Tensor):
        raise TypeError(f"a hook must return a tensor or None, not {type(result).__name__}")
    if result.shape != grad.shape:
        raise AutogradError(f"a hook returned a gradient of shape {tuple(result.shape)} for one of {tuple(grad.shape)}")
    return result


def _replaced(result: Any, grads: tuple[Any, ...], who: str) -> tuple[Any, ...]:
    if result is None:
        return grads
    new = result if isinstance(result, tuple) else (result,)
    if len(new) != len(grads):
        raise AutogradError(f"{who} returned {len(new)} gradients and must return {len(grads)}, or None")
    return new


def _back(task: GraphTask, grad: Any) -> Any:
    # A copy: what a hook returned may be the user's own, and it would come to rest in some .grad.
    if task.create_graph or grad is None:
        return grad
    return grad.clone() if grad.is_sparse else grad._array.copy()
