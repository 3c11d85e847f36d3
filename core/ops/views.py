"""Views and in-place changes: tensors over the same memory, and how their histories are kept right.

A view made while recording knows its parent (strongly) and is known to it (weakly). When one tensor of such a family
is changed in place by a recorded operation, the root of the family gets a node that says "the old value, except for
this region", and every living view is recorded anew from its parent, so all of them have the right history.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..autograd.edges import gradient_edge
from ..autograd.grad_mode import is_grad_enabled
from ..autograd.node import Edge
from ..errors import AutogradError
from ..tensor import Tensor
from ..types import Array
from .table import OpNode, Row


def view_of(parent: Tensor, array: Array, row: Row, arguments: tuple[Any, ...], params: tuple[Any, ...] = ()) -> Tensor:
    """``array``, a view of the parent's memory, as a tensor.

    ``row.view(parent array, *arguments)`` makes ``array`` again; ``params`` are for the gradient rule.
    """
    result = Tensor(array)
    result._counter = parent._counter
    if is_grad_enabled() and array.dtype.kind in "fcV":
        if parent._requires_grad:
            result._edge = (OpNode(row, (gradient_edge(parent),), (), params), 0)
            result._requires_grad = True
        result._view = (parent, row, arguments, params)
        register(parent, result)
    return result


def register(parent: Tensor, view: Tensor) -> None:
    """Let ``parent`` know its view, weakly."""
    views = parent._views
    if views is None:
        parent._views = [weakref.ref(view)]
        return
    # Sweeping at powers of two costs each view a constant; a table that is sliced for ever does not grow for ever.
    if len(views) >= 16 and not len(views) & (len(views) - 1):
        views[:] = [reference for reference in views if reference() is not None]
    views.append(weakref.ref(view))


def check_writable(target: Tensor) -> None:
    """Raise if a recorded in-place change of ``target`` makes no sense.

    Raises:
        AutogradError: it is a leaf that requires grad, or a view of one.
    """
    base = target._base
    root = target if base is None else base
    if root._requires_grad and root._edge is None:
        what = "a leaf that requires grad" if root is target else "a view of a leaf that requires grad"
        raise AutogradError(f"{what} cannot be changed in place while recording; do it under no_grad()")


def stopped() -> Edge:
    """The history of a value that depends on nothing: for a recorded tensor that is overwritten with constants."""
    return OpNode(_CONSTANT, ()), 0


def changed(target: Tensor, edge: Edge | None = None) -> Tensor:
    """Note that the array of ``target`` was written to; ``edge`` is the new value's history, if it has one."""
    target._counter[0] += 1
    if edge is not None:
        set_history(target, edge)
    return target


def set_history(target: Tensor, edge: Edge) -> None:
    """Make ``edge`` the history of ``target``, and bring that of every tensor over the same memory into line."""
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


def _region(array: Array, steps: tuple[tuple[Row, tuple[Any, ...]], ...]) -> Array:
    for row, arguments in steps:
        assert row.view is not None
        array = row.view(array, *arguments)
    return array


def _outside(xp: Any, grad: Any, steps: Any) -> Any:
    mask = np.ones(grad.shape, dtype=grad.dtype)
    _region(mask, steps)[...] = 0
    return grad * mask


def _inside(xp: Any, grad: Any, steps: Any) -> Any:
    places = _region(np.arange(grad.size if isinstance(grad, np.ndarray) else grad.numel()).reshape(grad.shape), steps)
    return xp.get(xp.reshape(grad, (-1,)), places)


_CONSTANT = Row("constant")
_PATCH = Row("patch", _outside, _inside)
