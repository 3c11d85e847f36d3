"""The same elements in another shape: views wherever NumPy can make one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.grad_mode import is_grad_enabled
from ..creation import to_shape
from ..tensor import Tensor
from ..types import Array
from .dims import one_dim
from .operation import operation
from .table import Row, record
from .views import view_of

__all__ = [
    "broadcast_to",
    "flatten",
    "permute",
    "reshape",
    "squeeze",
    "t",
    "transpose",
    "unsqueeze",
]
# What of these are methods of tensors too.
METHODS = (
    "broadcast_to",
    "contiguous",
    "expand",
    "expand_as",
    "flatten",
    "permute",
    "reshape",
    "reshape_as",
    "squeeze",
    "t",
    "transpose",
    "unsqueeze",
    "view",
    "view_as",
)


def _undo_permute(xp: Any, g: Any, inverse: Any) -> Any:
    return xp.transpose(g, inverse)


_RESHAPE = Row("reshape", lambda xp, g, shape: xp.reshape(g, shape), view=lambda x, shape: x.reshape(shape))
_PERMUTE = Row("permute", _undo_permute, view=lambda x, order: x.transpose(order))
_EXPAND = Row("expand", lambda xp, g, shape: xp.fit(g, shape, g.dtype), view=np.broadcast_to)


@operation
def reshape(a: Tensor, *shape: Any) -> Tensor:
    """The elements of ``a`` in row-major order in another shape, of which one length may be -1: a view if possible.

    Raises:
        ValueError: the number of elements differs.
    """
    x = a._array
    wanted = _shape_with_unknown(shape)
    try:
        out = x.reshape(wanted)
    except ValueError:
        raise ValueError(f"a tensor of shape {x.shape} cannot be reshaped to {wanted}") from None
    return _reshaped(a, out)


@operation
def view(a: Tensor, *shape: Any) -> Tensor:
    """Like ``reshape``, but never a copy. ``view(dtype)`` is not offered.

    Raises:
        ValueError: the number of elements differs, or the elements do not lie so in memory.
    """
    result = reshape(a, *shape)
    if result._counter is not a._counter:
        raise ValueError(f"a tensor of shape {a.shape}, stride {a.stride()} has no such view; use reshape() to copy it")
    return result


def _reshaped(a: Tensor, out: Array) -> Tensor:
    x = a._array
    # NumPy collapses chains of views, so a view's base is the array itself or what the array is a view of.
    if out.base is x or (x.base is not None and out.base is x.base):
        return view_of(a, out, _RESHAPE, (out.shape,), (x.shape,))
    result = Tensor(out)
    if a._requires_grad and is_grad_enabled():
        record(_RESHAPE, result, (a,), (), x.shape)
    return result


@operation
def transpose(a: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    order = list(range(a.ndim))
    first, second = one_dim(dim0, a.ndim), one_dim(dim1, a.ndim)
    if order:
        order[first], order[second] = order[second], order[first]
    return _permuted(a, tuple(order))


@operation
def permute(a: Tensor, *dims: Any) -> Tensor:
    """A view with the dimensions in the order ``dims``.

    Raises:
        ValueError: ``dims`` does not name each dimension once.
    """
    given = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = tuple(one_dim(dim, a.ndim) for dim in given)
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"permute() must name each of the {a.ndim} dimensions once, and you gave {given}")
    return _permuted(a, order)


@operation
def t(a: Tensor) -> Tensor:
    """A view of a matrix with rows and columns exchanged; of fewer dimensions, as it is.

    Raises:
        ValueError: more than two dimensions.
    """
    if a.ndim > 2:
        raise ValueError(f"t() takes at most 2 dimensions, and the shape is {a.shape}; use transpose(), or .mT")
    return _permuted(a, tuple(reversed(range(a.ndim))))


@operation
def reversed_dims(a: Tensor) -> Tensor:
    """``.T``: a view with all dimensions in reverse order."""
    return _permuted(a, tuple(reversed(range(a.ndim))))


@operation
def matrix_transpose(a: Tensor) -> Tensor:
    """``.mT``: a view with the last two dimensions exchanged."""
    if a.ndim < 2:
        raise ValueError(f".mT needs at least 2 dimensions, and the shape is {a.shape}")
    return transpose(a, -2, -1)


def _permuted(a: Tensor, order: tuple[int, ...]) -> Tensor:
    inverse = tuple(int(place) for place in np.argsort(order)) if len(order) > 2 else order
    return view_of(a, a._array.transpose(order), _PERMUTE, (order,), (inverse,))


@operation
def expand(a: Tensor, *shape: Any) -> Tensor:
    """A view of shape ``shape`` in which dimensions of length 1 are repeated; -1 keeps a length.

    Raises:
        ValueError: a dimension of another length would have to be repeated.
    """
    wanted = list(_shape_with_unknown(shape))
    x = a._array
    extra = len(wanted) - x.ndim
    for axis, length in enumerate(wanted):
        if length == -1 and axis >= extra:
            wanted[axis] = x.shape[axis - extra]
    return broadcast_to(a, tuple(wanted))


@operation
def expand_as(a: Tensor, other: Tensor) -> Tensor:
    """``expand`` to the shape of ``other``."""
    return broadcast_to(a, other.shape)


@operation
def broadcast_to(a: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A view of shape ``shape`` in which dimensions of length 1 are repeated."""
    x = a._array
    try:
        out = np.broadcast_to(x, shape)
    except ValueError:
        raise ValueError(f"a tensor of shape {x.shape} cannot be expanded to {tuple(shape)}") from None
    return view_of(a, out, _EXPAND, (out.shape,), (x.shape,))


@operation
def squeeze(a: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """A view without the dimensions of length 1, or without those of ``dim`` that have length 1."""
    x = a._array
    dims = (
        range(x.ndim) if dim is None else [one_dim(each, x.ndim) for each in ((dim,) if isinstance(dim, int) else dim)]
    )
    return _reshaped(a, x.reshape([length for axis, length in enumerate(x.shape) if axis not in dims or length != 1]))


@operation
def unsqueeze(a: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of length 1 in front of dimension ``dim``."""
    x = a._array
    place = one_dim(dim, x.ndim + 1)
    return _reshaped(a, x.reshape((*x.shape[:place], 1, *x.shape[place:])))


@operation
def flatten(a: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from ``start_dim`` to ``end_dim`` made one; a 0-d tensor becomes a vector."""
    x = a._array
    if not x.ndim:
        return reshape(a, 1)
    start, end = one_dim(start_dim, x.ndim), one_dim(end_dim, x.ndim)
    if start > end:
        raise ValueError(f"flatten() needs start_dim <= end_dim, and you gave {start_dim} and {end_dim}")
    middle = int(np.prod(x.shape[start : end + 1]))
    return _reshaped(a, x.reshape((*x.shape[:start], middle, *x.shape[end + 1 :])))


@operation
def view_as(a: Tensor, other: Tensor) -> Tensor:
    """``view`` in the shape of ``other``."""
    return view(a, other.shape)


@operation
def reshape_as(a: Tensor, other: Tensor) -> Tensor:
    """``reshape`` to the shape of ``other``."""
    return reshape(a, other.shape)


@operation
def contiguous(a: Tensor) -> Tensor:
    """``a`` itself if it lies in memory in row-major order without gaps, else such a copy."""
    if a._array.flags.c_contiguous:
        return a
    from .casting import clone

    return clone(a)


def _shape_with_unknown(shape: tuple[Any, ...]) -> tuple[int, ...]:
    lengths = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    known = to_shape(tuple(0 if length == -1 else length for length in lengths)) if lengths else ()
    return tuple(-1 if length == -1 else size for length, size in zip(lengths, known))


PROPERTIES = {"T": reversed_dims, "mT": matrix_transpose}
