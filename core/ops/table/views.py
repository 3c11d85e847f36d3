"""Views: tensors over the memory of another, which they remember, so that in-place changes find them (``in_place_history``).

A view made while recording knows its parent (strongly) and is known to it (weakly).
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
    elif parent._requires_grad or parent._view is not None:
        result._view = (parent, None, (), ())  # not recorded: check_writable() refuses to write to it while recording
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
