"""Views: tensors that share the memory of another, their parent.

A view made while recording refers to its parent, which has a weak reference to the view, so that in-place changes find both
(``in_place_history``).
"""

from __future__ import annotations

import weakref
from typing import Any

from ...autograd.edges import gradient_edge
from ...autograd.grad_mode import is_grad_enabled
from ...tensors import Tensor
from ...types import Array
from .nodes import OpNode
from .rows import Row


def view_of(parent: Tensor, array: Array, row: Row, arguments: tuple[Any, ...], params: tuple[Any, ...] = ()) -> Tensor:
    """Return ``array``, a view of the parent's memory, as a tensor.

    Args:
        parent: the tensor whose memory it shares.
        array: the array of the view.
        row: row of the operation; ``row.view(parent array, *arguments)`` makes ``array`` again.
        arguments: arguments of ``row.view``.
        params: further arguments of the gradient rule.
    """
    result = Tensor(array)
    result._counter = parent._counter
    if array.dtype.kind not in "fcV":
        return result
    if is_grad_enabled():
        if parent._requires_grad:
            result._edge = (OpNode(row, (gradient_edge(parent),), (), params), 0)
            result._requires_grad = True
        result._view = (parent, row, arguments, params)
        register(parent, result)
    else:
        result._view = (parent, None, (), ())  # not recorded: check_writable() refuses to write to it while recording
    return result


def register(parent: Tensor, view: Tensor) -> None:
    """Enter ``view`` into the weak list of views of ``parent``."""
    views = parent._views
    if views is None:
        parent._views = [weakref.ref(view)]
        return
    # Sweeping at powers of two costs a constant for each view, and the list of a tensor that is sliced for ever stays short.
    if len(views) >= 16 and not len(views) & (len(views) - 1):
        views[:] = [reference for reference in views if reference() is not None]
    views.append(weakref.ref(view))
