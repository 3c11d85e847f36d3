"""Calls of hooks during a backward pass.

The engine comes here only for nodes with hooks and in passes with ``inputs``. Hooks take and return tensors; gradients
of ordinary passes are arrays, so they are wrapped before a hook is called and unwrapped after. ``recorded`` says
everywhere that the pass is recorded (``create_graph=True``): then gradients are tensors already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.errors import AutogradError
from ..array_like import as_array as array_of
from ..tensors import Tensor
from .accumulate import AccumulateGrad
from .captures import Captures
from .hooks import HookTable, NodeHooks
from .leaf_gradient import returned
from .node import Node


def before(
    node: Node, grads: list[Any] | None, captures: Captures | None, recorded: bool
) -> tuple[list[Any] | None, bool]:
    """Call the hooks in front of ``node``, and store captured gradients.

    Args:
        node: the node that is next.
        grads: its incoming gradients; ``None`` if there are none.
        captures: the gradients that the pass captures, if it does.
        recorded: whether the pass is recorded.

    Returns:
        The gradients to go on with, and whether the node must run.
    """
    if captures is not None and not captures.concerns(node):
        return None, False
    values = [None] * node.num_inputs if grads is None else [as_array(grad) for grad in grads]
    if node._hooks is not None:
        values = _run_hooks_before(node, node._hooks, values, recorded)
    if captures is not None:
        if isinstance(node, AccumulateGrad):
            values = [leaf_hooks(node.variable, values[0], recorded)]
        captures.take(node, values)
    missing = all(value is None for value in values)
    return None if missing else values, captures is None or captures.needs(node)


def after(node: Node, results: Sequence[Any], grads: list[Any] | None, recorded: bool) -> Sequence[Any]:
    """Call the hooks behind ``node``, and return the gradients of its inputs to go on with.

    Args:
        node: the node that has run.
        results: the gradients of its inputs.
        grads: those of its outputs; ``None`` if there were none.
        recorded: whether the pass is recorded.
    """
    assert node._hooks is not None
    outputs = tuple(to_tensor(grad) for grad in (grads or [None] * node.num_inputs))
    inputs = tuple(to_tensor(grad) for grad in results)
    for hook in node._hooks.after.calls():
        inputs = _replaced(hook(inputs, outputs), inputs, f"a hook of {node.name()}")
    return [_unwrapped(grad, recorded) for grad in inputs]


def leaf_hooks(leaf: Tensor, grad: Any, recorded: bool) -> Any:
    """Call the hooks registered on a leaf, and return the gradient to go on with.

    Args:
        leaf: the tensor.
        grad: its gradient, or ``None``.
        recorded: whether the pass is recorded.
    """
    hooks = leaf._hooks
    return grad if hooks is None else _run_tensor_hooks(hooks.tensor, 0, grad, recorded)


def after_leaf(node: AccumulateGrad) -> None:
    """Call the hooks that run once a leaf's gradient has been delivered."""
    if node._hooks is not None:
        for hook in node._hooks.after.calls():
            hook((), (node.variable.grad,))
    if node.variable._hooks is not None:
        for hook in node.variable._hooks.after.calls():
            hook(node.variable)


def to_tensor(grad: Any) -> Any:
    """Return a tensor for a program's function, which may change it; ``None`` and tensors are returned unchanged."""
    return grad if grad is None or isinstance(grad, Tensor) else Tensor(returned(np.asarray(grad)))


def to_array(grad: Any) -> Any:
    """Return the array of ``grad``; ``None`` and sparse tensors are returned unchanged."""
    if isinstance(grad, Tensor):
        return grad if grad.is_sparse else grad._array
    return None if grad is None else array_of(grad)


def as_array(grad: Any) -> Any:
    """Return a NumPy scalar as a 0-d array; arrays, tensors and ``None`` are returned unchanged."""
    return np.asarray(grad) if isinstance(grad, np.generic) else grad


def _run_hooks_before(node: Node, hooks: NodeHooks, values: list[Any], recorded: bool) -> list[Any]:
    for slot, value in enumerate(values):
        values[slot] = _run_tensor_hooks(hooks.tensor, slot, value, recorded)
    for slot, reference in hooks.retained.items():
        tensor = reference()
        if tensor is not None and values[slot] is not None:
            tensor._grad = to_tensor(values[slot] if recorded else _unwrapped(to_tensor(values[slot]), recorded))
    if hooks.before:
        tensors = tuple(to_tensor(value) for value in values)
        for hook in hooks.before.calls():
            tensors = _replaced(hook(tensors), tensors, f"a prehook of {node.name()}")
        values = [_unwrapped(tensor, recorded) for tensor in tensors]
    return values


def _run_tensor_hooks(table: HookTable, slot: int, grad: Any, recorded: bool) -> Any:
    if grad is None or not table:
        return grad
    value = to_tensor(grad)
    for wanted_slot, hook in table.calls():
        if wanted_slot == slot:
            result = hook(value)
            if result is not None:
                value = _checked(result, value)
    return _unwrapped(value, recorded)


def _checked(result: Any, grad: Tensor) -> Tensor:
    if not isinstance(result, Tensor):
        raise TypeError(f"a hook must return a tensor or None, not {type(result).__name__}")
    if result.shape != grad.shape:
        raise AutogradError(f"a hook returned a gradient of shape {tuple(result.shape)} for one of {tuple(grad.shape)}")
    return result


def _replaced(result: Any, grads: tuple[Any, ...], hook: str) -> tuple[Any, ...]:
    if result is None:
        return grads
    new = result if isinstance(result, tuple) else (result,)
    if len(new) != len(grads):
        raise AutogradError(f"{hook} returned {len(new)} gradients and must return {len(grads)}, or None")
    return new


def _unwrapped(grad: Any, recorded: bool) -> Any:
    # A copy: a hook may have returned the user's own tensor, and its array would become some leaf's .grad.
    if recorded or grad is None:
        return grad
    return grad.clone() if grad.is_sparse else grad._array.copy()
