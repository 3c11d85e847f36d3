"""The graph's ends: a leaf's ``AccumulateGrad`` node, and ``accumulate_grad``, which adds a gradient to ``.grad``.

The first gradient is stored as it comes, as a ``BorrowedGradient``; the first read of ``.grad`` makes it the leaf's own.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from ...base.errors import AutogradError
from ..tensors import Tensor
from .leaf_gradient import BorrowedGradient, grad_lock, returned
from .node import Node

_accumulators_lock = threading.RLock()


class AccumulateGrad(Node):
    """The node where a leaf's gradient arrives. The engine gives it to the task's sink; this node computes nothing."""

    __slots__ = ("variable",)

    num_inputs = 1
    tape = True

    def __init__(self, variable: Tensor) -> None:
        self.next_edges = ()
        self._hooks = None
        self._metadata = None
        self.variable = variable


def accumulator_of(leaf: Tensor) -> AccumulateGrad:
    """Return the leaf's only ``AccumulateGrad``. The leaf refers to it weakly: it lives as long as a graph leads to it."""
    reference = leaf._accumulator
    node = None if reference is None else reference()
    if node is not None:
        return node
    fresh = AccumulateGrad(leaf)
    fresh_reference = weakref.ref(fresh)
    with _accumulators_lock:  # another thread may be recording an operation on the same leaf
        reference = leaf._accumulator
        node = None if reference is None else reference()
        if node is None:
            leaf._accumulator = fresh_reference
            node = fresh
    return node


def divert(leaf: Tensor, node: Node) -> None:
    """Let the gradient of a leaf arrive at ``node`` in place of its ``AccumulateGrad``, for operations recorded from now on.

    Args:
        leaf: a tensor without ``grad_fn``; it refers to ``node`` weakly.
        node: takes one gradient, and hands one on to the leaf's own ``AccumulateGrad``.
    """
    with _accumulators_lock:
        leaf._accumulator = weakref.ref(node)


def accumulate_grad(leaf: Tensor, grad: Any) -> None:
    """Add a gradient to ``leaf.grad``.

    An array is added in place, as in PyTorch: other holders of ``leaf.grad`` see the change.

    Args:
        leaf: a tensor without ``grad_fn``.
        grad: an array, a sparse tensor, or (from a recorded pass) a tensor; of the leaf's shape.

    Raises:
        AutogradError: the shapes differ; the gradient rule of a custom node is wrong.
    """
    array = leaf._array
    if grad.shape != array.shape:
        raise AutogradError(f"a leaf of shape {array.shape} got a gradient of shape {tuple(grad.shape)}")
    if not isinstance(grad, Tensor) and grad.dtype is not array.dtype:
        grad = grad.astype(array.dtype)
    added = False
    while not added:
        # The sum may run a user's code, so it is computed without the lock, and again if another thread was faster.
        # For the same reason, the replaced gradient is destroyed after the lock is released.
        have = leaf._grad
        if isinstance(grad, Tensor):
            have = leaf.grad if isinstance(have, BorrowedGradient) else have
            added = _replace(leaf, have, grad if have is None else have + grad)
        elif have is None:
            added = _replace(leaf, None, BorrowedGradient(returned(grad)))
        elif isinstance(have, BorrowedGradient) or have.is_sparse:
            first = have._array if isinstance(have, BorrowedGradient) else have
            added = _replace(leaf, have, Tensor(np.asarray(first + grad)))
        else:
            added = _add_in_place(leaf, have, grad)


def _replace(leaf: Tensor, have: Tensor | BorrowedGradient | None, new: Tensor | BorrowedGradient) -> bool:
    with grad_lock:
        if leaf._grad is not have:
            return False
        leaf._grad = new
    return True


def _add_in_place(leaf: Tensor, have: Tensor, grad: Any) -> bool:
    # Under the lock, because two threads must not add into the same memory. NumPy on plain arrays, no tensor operation.
    with grad_lock:
        if leaf._grad is not have:
            return False
        np.add(have._array, grad, out=have._array, casting="same_kind")
        have._counter[0] += 1
    return True
