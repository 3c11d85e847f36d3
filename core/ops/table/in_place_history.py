"""History of tensors that share memory, after one of them is changed in place.

When a recorded operation changes a tensor in place, the base of its views gets a node for "the old value, except for this
region", and every living view is recorded again from its parent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....base.errors import AutogradError
from ...autograd.edges import gradient_edge
from ...autograd.node import Edge
from ...tensors import Tensor
from ...types import Array, DType
from .linear_map import LinearMap
from .nodes import OpNode
from .rows import ARRAYS, Row

# From the root to the region: each view's row and the arguments of its forward function.
Steps = tuple[tuple[Row, tuple[Any, ...]], ...]


def check_writable(target: Tensor, recorded: bool = True) -> None:
    """Raise if gradients would be wrong after an in-place change of ``target`` while recording.

    Args:
        target: the tensor that is about to be changed.
        recorded: whether the change itself is recorded: the target or an operand requires grad.

    Raises:
        AutogradError: a recorded change of a leaf that requires grad, or of a view of one; or of a view that was made
            under ``no_grad()``, whose base would not get the new history.
    """
    _check_view(target, recorded)
    if not recorded:
        return
    base = target._base
    root = target if base is None else base
    if root._requires_grad and root._edge is None:
        what = "a leaf that requires grad" if root is target else "a view of a leaf that requires grad"
        raise AutogradError(f"{what} cannot be changed in place while recording; do it under no_grad()")


def stopped() -> Edge:
    """Return the gradient edge of a value without inputs, for a recorded tensor that is overwritten with constants."""
    return OpNode(_CONSTANT, ()), 0


def changed(target: Tensor, edge: Edge | None = None) -> Tensor:
    """Count a write to the array of ``target``, set its history to ``edge`` if that is given, and return ``target``."""
    target._counter[0] += 1
    if edge is not None:
        set_history(target, edge)
    return target


def _check_view(target: Tensor, recorded: bool) -> None:
    view = target._view
    while view is not None:
        if view[1] is not None and view[1].view is None and (recorded or view[0]._requires_grad):
            raise AutogradError(
                "a view by as_strided() of a tensor that does not cover its memory in order cannot be changed in place while "
                "recording; take it from a clone() of that tensor, or write under no_grad()"
            )
        if view[1] is None and (recorded or view[0]._requires_grad):
            raise AutogradError(
                "a view that was made under no_grad() cannot be changed in place while recording; "
                "do both under no_grad(), or make the view while recording"
            )
        view = view[0]._view


def set_history(target: Tensor, edge: Edge) -> None:
    """Make ``edge`` the history of ``target``, and update that of every tensor that shares its memory."""
    steps: list[tuple[Row, tuple[Any, ...]]] = []
    root = target
    while root._view is not None:
        parent, row, arguments, _ = root._view
        steps.insert(0, (row, arguments))
        root = parent
    if root is target:
        _move(root, edge)
    else:
        node = OpNode(_PATCH, (gradient_edge(root), edge), (), (tuple(steps),))
        _move(root, (node, 0))
    _record_views(root)


def _move(tensor: Tensor, edge: Edge) -> None:
    retains = tensor.retains_grad
    if retains and tensor._edge is not None and tensor._edge[0]._hooks is not None:
        del tensor._edge[0]._hooks.retained[tensor._edge[1]]
    tensor._edge, tensor._requires_grad = edge, True
    if retains:
        tensor.retain_grad()


def _record_views(root: Tensor) -> None:
    stack = [root]
    while stack:
        parent = stack.pop()
        for reference in parent._views or ():
            view = reference()
            if view is not None and view._view is not None:
                _, row, _, params = view._view
                _move(view, (OpNode(row, (gradient_edge(parent),), (), params), 0))
                stack.append(view)


def _region(array: Array, steps: Steps) -> Array:
    for row, arguments in steps:
        assert row.view is not None
        array = row.view(array, *arguments)
    return array


def _cleared(x: Array, steps: Steps) -> Array:
    result: Array = np.array(x, order="C")  # not x * mask: 0 times nan is nan
    _region(result, steps)[...] = 0
    return result


def _taken(x: Array, steps: Steps, root: DType) -> Array:
    return np.array(_region(np.asarray(x, order="C"), steps))


def _placed(x: Array, shape: tuple[int, ...], steps: Steps, root: DType) -> Array:
    result: Array = np.zeros(shape, root)
    _region(result, steps)[...] = x
    return result


# The dtype of the root is a parameter: a region of real parts of complex numbers has another one.
_OUTSIDE = LinearMap("outside", _cleared, lambda g, shape, steps: _cleared(g, steps))
_INSIDE = LinearMap("inside", _taken, _placed)
_CONSTANT = Row("constant")
_PATCH = Row(
    "patch",
    lambda xp, g, steps: (_OUTSIDE.forward if xp is ARRAYS else _OUTSIDE)(g, steps),
    lambda xp, g, steps: (_INSIDE.forward if xp is ARRAYS else _INSIDE)(g, steps, g.dtype),
)
