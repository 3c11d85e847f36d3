"""The largest and smallest elements, over some dimensions or all, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ...tensors import Tensor
from ...types import Array, Dims
from ..elementwise import comparison
from ..elementwise.conversion import clone
from ..table.dims import MinMax, ValuesIndices, all_dims, kept_shape, one_dim
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.rows import Row


def share(xp: Any, g: Any, a: Any, out: Any, dims: Any, kept: Any) -> Any:
    """Return the gradient of an element chosen by value: equal ones share it evenly, and so do nans."""
    found = xp.reshape(out, kept)
    won = (a == found) | ((a != a) & (found != found))
    return xp.chosen(won, xp.reshape(g, kept) / xp.sum_dims(xp.cast(won, g.dtype), dims, True))


def _share_of_numbers(xp: Any, g: Any, a: Any, out: Any, dims: Any, kept: Any) -> Any:
    # PyTorch's amax and amin give nan where the result is nan, other than its max and min: they do multiply.
    won = xp.cast(a == xp.reshape(out, kept), g.dtype)
    return xp.reshape(g, kept) * won / xp.sum_dims(won, dims, True)


_AMAX = Row("amax", _share_of_numbers)
_AMIN = Row("amin", _share_of_numbers)
_MAX = Row("max", share)
_MIN = Row("min", share)
_PICK = Row("pick", lambda xp, g, shape, dim, index, kept: xp.put_along(shape, dim, index, xp.reshape(g, kept)))


@operation(method=True)
def amax(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the largest element over ``dim``, nan if there is one; equal ones share the gradient.

    Args:
        input: any shape, real.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.

    Raises:
        ValueError: there are no elements.
    """
    return _extreme("amax", _AMAX, np.maximum, input, dim, keepdim)


@operation(method=True)
def amin(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the smallest element over ``dim``, nan if there is one; equal ones share the gradient.

    Args:
        input: any shape, real.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.

    Raises:
        ValueError: there are no elements.
    """
    return _extreme("amin", _AMIN, np.minimum, input, dim, keepdim)


@operation(method=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """Return ``amin`` and ``amax``.

    Args:
        input: any shape, real.
        dim: the dimension; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.

    Raises:
        ValueError: there are no elements.
    """
    return MinMax(
        _extreme("aminmax", _AMIN, np.minimum, input, dim, keepdim),
        _extreme("aminmax", _AMAX, np.maximum, input, dim, keepdim),
    )


@overload
def max(input: Tensor) -> Tensor: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool = ...) -> ValuesIndices: ...
@overload
def max(input: Tensor, dim: Tensor) -> Tensor: ...
@operation(method=True)
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Tensor | ValuesIndices:
    """Return the largest element; with ``dim``, the largest along it and where; with a tensor, the element-wise maximum.

    Args:
        input: any shape, real.
        dim: the dimension, or a tensor to compare with.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        other: a tensor to compare with.

    Raises:
        ValueError: there are no elements.
    """
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return comparison.maximum(input, other)
    if dim is None:
        return _extreme("max", _MAX, np.maximum, input, None, False)
    return pick(input, _arg("max", np.argmax, input, dim), dim, keepdim)


@overload
def min(input: Tensor) -> Tensor: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool = ...) -> ValuesIndices: ...
@overload
def min(input: Tensor, dim: Tensor) -> Tensor: ...
@operation(method=True)
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Tensor | ValuesIndices:
    """Return the smallest element; with ``dim``, the smallest along it and where; with a tensor, the element-wise minimum.

    Args:
        input: any shape, real.
        dim: the dimension, or a tensor to compare with.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        other: a tensor to compare with.

    Raises:
        ValueError: there are no elements.
    """
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return comparison.minimum(input, other)
    if dim is None:
        return _extreme("min", _MIN, np.minimum, input, None, False)
    return pick(input, _arg("min", np.argmin, input, dim), dim, keepdim)


@operation(method=True)
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return where the largest element is, along ``dim`` or in the flattened tensor: the first one, as ``int64``.

    Args:
        input: any shape, real.
        dim: the dimension; ``None`` for the flattened tensor.
        keepdim: whether the dimensions that are reduced stay, with length 1.

    Raises:
        ValueError: there are no elements.
    """
    return _place("argmax", np.argmax, input, dim, keepdim)


@operation(method=True)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return where the smallest element is, along ``dim`` or in the flattened tensor: the first one, as ``int64``.

    Args:
        input: any shape, real.
        dim: the dimension; ``None`` for the flattened tensor.
        keepdim: whether the dimensions that are reduced stay, with length 1.

    Raises:
        ValueError: there are no elements.
    """
    return _place("argmin", np.argmin, input, dim, keepdim)


def _extreme(name: str, row: Row, function: Any, input: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    x = ordered(name, input)
    dims = all_dims(dim, x.ndim)
    not_empty(name, x, dims)
    result = Tensor(function.reduce(x, dims, keepdims=keepdim))
    if records(input):
        record(row, result, (input,), (keep(input), keep_result(result)), dims, kept_shape(x.shape, dims))
    return result


def _place(name: str, function: Any, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    x = ordered(name, input)
    if dim is None:
        not_empty(name, x, range(x.ndim))
        place = np.asarray(function(x), np.int64)
        return Tensor(place.reshape((1,) * x.ndim) if keepdim else place)
    places = _arg(name, function, input, dim)
    return Tensor(places if keepdim or not x.ndim else places.squeeze(one_dim(dim, x.ndim)))


def _arg(name: str, function: Any, input: Tensor, dim: int) -> Array:
    x = ordered(name, input)
    axis = one_dim(dim, x.ndim)
    not_empty(name, x, (axis,))
    return np.asarray(function(x, axis=axis, keepdims=True)) if x.ndim else np.zeros((), np.int64)


def pick(input: Tensor, places: Array, dim: int, keepdim: bool) -> ValuesIndices:
    """Return the elements at ``places`` along ``dim``, which has length 1 there and is left out unless ``keepdim``."""
    x = input._array
    dim = one_dim(dim, x.ndim)
    values = np.take_along_axis(x, places, dim) if x.ndim else x.copy()
    shown = places
    if not keepdim and x.ndim:
        values, shown = values.squeeze(dim), places.squeeze(dim)
    return ValuesIndices(picked(input, values, places, dim), Tensor(shown))


def picked(input: Tensor, values: Array, places: Array, dim: int) -> Tensor:
    """Return ``values``, read from ``input`` at ``places`` along ``dim``, recorded."""
    if not input._array.ndim:
        return clone(input)
    result = Tensor(values)
    if records(input):
        record(_PICK, result, (input,), (), input._array.shape, dim, places, places.shape)
    return result


def ordered(name: str, input: Tensor) -> Array:
    """Return the array of ``input``, which must hold real numbers.

    Raises:
        TypeError: complex numbers, which have no order.
    """
    if input._array.dtype.kind == "c":
        raise TypeError(f"{name}() needs numbers that have an order, and you gave {input.dtype}")
    return input._array


def not_empty(name: str, x: Array, dims: Sequence[int]) -> None:
    """Check that there are elements along ``dims``.

    Raises:
        ValueError: there are none.
    """
    for axis in dims:
        if axis < x.ndim and not x.shape[axis]:
            raise ValueError(
                f"{name}() of no elements: the tensor has shape {x.shape}, so give a dim that is not empty"
            )
