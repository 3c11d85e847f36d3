"""In-place forms of views: ``t_``, ``transpose_``, ``squeeze_``, ``unsqueeze_`` change a tensor's shape, not its elements."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from ...autograd.grad_mode import GradMode, is_grad_enabled
from ...tensors import Tensor
from ..table.dims import one_dim
from ..table.in_place_history import check_writable
from ..table.operation import operation
from ..table.rows import Row
from ..table.views import view_of
from .reshaping import RESHAPE, squeezed_shape, unsqueezed_shape
from .strided import strided_view
from .transposing import SWAP


@operation(function=False, method=True, synonyms=("swapdims_",))
def transpose_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions of this tensor, and return it.

    Args:
        input: the tensor to change.
        dim0: one dimension.
        dim1: the other dimension.

    Raises:
        AutogradError: ``input`` is a leaf that requires grad.
        IndexError: there is no such dimension.
    """
    x = input._array
    dims = one_dim(dim0, x.ndim), one_dim(dim1, x.ndim)
    return _turn(input, x.swapaxes(*dims), SWAP, dims, dims) if x.ndim else _reshape(input, ())


@operation(function=False, method=True)
def t_(input: Tensor) -> Tensor:
    """Exchange rows and columns of this matrix, and return it; a tensor of fewer dimensions stays as it is.

    Raises:
        AutogradError: ``input`` is a leaf that requires grad.
        ValueError: more than two dimensions.
    """
    if input.ndim > 2:
        raise ValueError(f"t_() takes at most 2 dimensions, and the shape is {input.shape}; use transpose_()")
    return transpose_(input, 0, -1)


@operation(function=False, method=True)
def swapaxes_(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two dimensions of this tensor, and return it: ``transpose_`` under NumPy's name.

    Args:
        input: the tensor to change.
        axis0: one dimension.
        axis1: the other dimension.
    """
    return transpose_(input, axis0, axis1)


@operation(function=False, method=True)
def squeeze_(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Remove dimensions of length 1 of this tensor, as ``squeeze`` does, and return it. Errors: those of ``transpose_``."""
    return _reshape(input, squeezed_shape(input._array, dim))


@operation(function=False, method=True)
def unsqueeze_(input: Tensor, dim: int) -> Tensor:
    """Insert a dimension of length 1 into this tensor, as ``unsqueeze`` does, and return it. Errors: ``transpose_``'s."""
    return _reshape(input, unsqueezed_shape(input._array, dim))


@operation(function=False, method=True)
def as_strided_(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Give this tensor another shape and other strides over the same memory, and return it. Errors: ``as_strided``'s.

    Args:
        input: the tensor to change.
        size: its new shape.
        stride: number of elements from one index to the next, for each dimension.
        storage_offset: the first element, counted from the start of the memory; the present one if ``None``.
    """
    return _turn(input, *strided_view(input, size, stride, storage_offset))


def _reshape(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    return _turn(input, input._array.reshape(shape), RESHAPE, (shape,), (input._array.shape,))


def _turn(target: Tensor, array: Any, row: Row, arguments: tuple[Any, ...], params: tuple[Any, ...]) -> Tensor:
    if is_grad_enabled() and target._requires_grad:
        check_writable(target)
    target._counter[0] += 1
    leaf, related = target._edge is None, target._view is not None or bool(target._views)
    if leaf and (target._requires_grad or not related):
        target._array = array
        return target
    # A new tensor takes over the former value, its base and its views; this tensor becomes a view of the new one.
    former = Tensor(target._array, target._requires_grad, target._edge)
    former._counter, former._view, former._views = target._counter, target._view, target._views
    for reference in former._views or ():
        child = reference()
        if child is not None and child._view is not None:
            child._view = (former, *child._view[1:])
    if former._view is not None:
        siblings = former._view[0]._views or []
        siblings[:] = [weakref.ref(former) if each() is target else each for each in siblings]
    with GradMode(True):  # a recorded tensor stays recorded, also under no_grad()
        result = view_of(former, array, row, arguments, params)
    target._array, target._edge, target._view, target._views = array, result._edge, result._view, None
    if result._view is not None:
        former._views = [each for each in former._views or () if each() is not result]
        former._views.append(weakref.ref(target))
    return target
