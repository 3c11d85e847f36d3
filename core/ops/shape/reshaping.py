"""Reshaping: the same elements in the same order in another shape, as views where NumPy can make one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...shapes import to_shape
from ...tensors import Tensor
from ...types import Array
from ..elementwise.conversion import clone
from ..table.dims import one_dim
from ..table.nodes import record, records
from ..table.operation import operation, published
from ..table.rows import Row
from ..table.views import view_of

RESHAPE = Row(
    "reshape", lambda xp, g, shape: xp.reshape(g, shape), view=lambda x, shape: x.reshape(shape), holomorphic=False
)


@operation(method=True)
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """Return the elements of ``input`` in row-major order in shape ``shape``, a view if possible; one length may be -1.

    Raises:
        TypeError: a length is not an integer.
        ValueError: the number of elements differs.
    """
    wanted: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return reshaped(input, _in_shape(input._array, wanted))


def _in_shape(x: Array, wanted: Any) -> Array:
    try:
        out: Array = x.reshape(wanted)
    except (ValueError, TypeError):
        raise _unfit(x, wanted) from None
    if out.shape != wanted and min(wanted, default=0) < -1:  # NumPy takes any negative length for -1
        raise _unfit(x, wanted)
    return out


def _unfit(x: Array, wanted: Any) -> Exception:
    try:
        known = to_shape(tuple(0 if length == -1 else length for length in wanted))
    except (TypeError, ValueError) as error:
        return error
    shape = tuple(-1 if length == -1 else size for length, size in zip(wanted, known))
    return ValueError(f"a tensor of {x.size} elements and shape {x.shape} cannot be reshaped to {shape}")


def reshaped(input: Tensor, out: Array) -> Tensor:
    """Return ``out``, the array of ``input`` after NumPy's ``reshape``, as a tensor: a view if NumPy made one."""
    x = input._array
    # NumPy collapses chains of views, so a view's base is the array itself or the base of the array.
    if out.base is x or (x.base is not None and out.base is x.base):
        return view_of(input, out, RESHAPE, (out.shape,), (x.shape,))
    result = Tensor(out)
    return record(RESHAPE, result, (input,), (), x.shape) if records(input) else result


@operation(function=False, method=True)
def view(input: Tensor, *shape: Any) -> Tensor:
    """Return ``reshape(input, *shape)``, never a copy. ``view(dtype)`` reads the memory as another dtype, without gradient.

    Raises:
        ValueError: the number of elements differs, or the strides allow no such view.
    """
    if shape and isinstance(shape[0], (np.dtype, type)):
        return _retyped(input, np.dtype(shape[0]))
    wanted: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    result = reshaped(input, _in_shape(input._array, wanted))
    if result._counter is not input._counter:
        raise ValueError(
            f"a tensor of shape {input.shape}, stride {input.stride()} has no such view, of shape {result.shape}; "
            "use reshape() to copy it"
        )
    return result


def _retyped(input: Tensor, dtype: Any) -> Tensor:
    x = input._array
    if not x.ndim and dtype.itemsize != x.itemsize:
        raise ValueError(f"a 0-d tensor of {x.dtype} cannot be seen as {dtype}: their sizes differ")
    try:
        result = Tensor(x.view(dtype))
    except ValueError:
        raise ValueError(
            f"a tensor of shape {x.shape}, stride {input.stride()}, {x.dtype} cannot be seen as {dtype}: the last "
            "dimension must be contiguous, and its bytes a multiple of the new size"
        ) from None
    result._counter = input._counter
    return result


@operation(function=False, method=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``view`` with the shape of ``other``."""
    return view(input, other.shape)


@operation(function=False, method=True)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``reshape`` with the shape of ``other``."""
    return reshape(input, other.shape)


@operation(method=True)
def squeeze(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Return a view without the dimensions of length 1, all of them or those named by ``dim``.

    Raises:
        IndexError: there is no such dimension.
    """
    x = input._array
    out = x.squeeze() if dim is None else x.reshape(squeezed_shape(x, dim))
    return view_of(input, out, RESHAPE, (out.shape,), (x.shape,))


def squeezed_shape(x: Array, dim: Any) -> tuple[int, ...]:
    """Return the shape of ``squeeze(x, dim)``."""
    if dim is None:
        return tuple(length for length in x.shape if length != 1)
    dims = (one_dim(dim, x.ndim),) if isinstance(dim, int) else [one_dim(each, x.ndim) for each in dim]
    return tuple(length for axis, length in enumerate(x.shape) if length != 1 or axis not in dims)


@operation(method=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view with a new dimension of length 1, which has position ``dim`` in the result.

    Raises:
        IndexError: there is no such position.
    """
    x = input._array
    out = x.reshape(unsqueezed_shape(x, dim))
    return view_of(input, out, RESHAPE, (out.shape,), (x.shape,))


def unsqueezed_shape(x: Array, dim: int) -> tuple[int, ...]:
    """Return the shape of ``unsqueeze(x, dim)``."""
    axis = one_dim(dim, x.ndim + 1)
    return (*x.shape[:axis], 1, *x.shape[axis:])


@operation(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return ``input`` with the dimensions ``start_dim`` to ``end_dim`` made one, a view if possible; 0-d becomes 1-d.

    Args:
        input: any shape and dtype.
        start_dim: the first of these dimensions.
        end_dim: the last of these dimensions.

    Raises:
        IndexError: there is no such dimension.
        ValueError: ``start_dim`` comes after ``end_dim``.
    """
    x = input._array
    start, end = one_dim(start_dim, x.ndim), one_dim(end_dim, x.ndim)
    if start > end:
        raise ValueError(f"flatten() needs start_dim <= end_dim, and you gave {start_dim} and {end_dim}")
    if x.ndim and start == end:
        return input
    middle = math.prod(x.shape[start : end + 1])
    return reshaped(input, x.reshape((*x.shape[:start], middle, *x.shape[end + 1 :])))


@operation(method=True)
def ravel(input: Tensor) -> Tensor:
    """Return the elements in row-major order as a vector, a view if possible."""
    return reshaped(input, np.ascontiguousarray(input._array).reshape(-1))


@operation(method=True)
def unflatten(input: Tensor, dim: int, sizes: tuple[int, ...]) -> Tensor:
    """Return ``input`` with dimension ``dim`` replaced by dimensions of the lengths ``sizes``, a view if possible.

    Args:
        input: any shape and dtype.
        dim: the dimension to replace.
        sizes: the new lengths; one may be -1.

    Raises:
        IndexError: there is no such dimension.
        ValueError: the product of the sizes is not the length of ``dim``.
    """
    axis, shape, lengths = one_dim(dim, input.ndim), input.shape, tuple(sizes)
    known = math.prod(length for length in lengths if length != -1)
    unknown = lengths.count(-1)
    length = shape[axis] if shape else 1
    if unknown > 1 or (known != length if not unknown else not known or length % known) or not lengths:
        raise ValueError(f"unflatten() sizes {lengths} do not multiply to {length}, the length of dim {dim}")
    return reshape(input, (*shape[:axis], *(length // known if n == -1 else n for n in lengths), *shape[axis + 1 :]))


@published(function=True)
def atleast_1d(*tensors: Any) -> Any:
    """Return each tensor, 0-d ones with shape ``(1,)``; a tuple for more than one."""
    return _each(tensors, lambda tensor: tensor if tensor.ndim else reshape(tensor, 1))


@published(function=True)
def atleast_2d(*tensors: Any) -> Any:
    """Return each tensor, those of fewer than 2 dimensions with shape ``(1, n)``; a tuple for more than one."""
    return _each(tensors, lambda tensor: tensor if tensor.ndim >= 2 else reshape(tensor, (1, -1)))


@published(function=True)
def atleast_3d(*tensors: Any) -> Any:
    """Return each tensor, ``(n,)`` with shape ``(1, n, 1)``, ``(n, m)`` with ``(n, m, 1)``; a tuple for more than one."""
    return _each(tensors, _three_dims)


def _three_dims(tensor: Tensor) -> Tensor:
    if tensor.ndim >= 3:
        return tensor
    return unsqueeze(tensor, -1) if tensor.ndim == 2 else reshape(tensor, (1, -1, 1))


def _each(tensors: tuple[Any, ...], function: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(function(tensor) for tensor in tensors[0])
    return function(tensors[0]) if len(tensors) == 1 else tuple(function(tensor) for tensor in tensors)


@operation(function=False, method=True)
def contiguous(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return ``input`` itself if its memory is in row-major order without gaps, else a copy that is."""
    return input if input._array.flags.c_contiguous else clone(input)
