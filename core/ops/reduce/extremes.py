"""Largest and smallest elements, of all dimensions or some, and their indices."""

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
from ..table.watched import watched


def tied_rule(xp: Any, g: Any, a: Any, out: Any, dims: Any, kept: Any) -> Any:
    """Return the gradient for an operation that chooses an element by its value; equal elements share it, nans too."""
    found = xp.reshape(out, kept)
    won = (a == found) | ((a != a) & (found != found))
    return xp.chosen(won, xp.reshape(g, kept) / xp.sum_dims(xp.cast(won, g.dtype), dims, True))


def _tied_rule_of_numbers(xp: Any, g: Any, a: Any, out: Any, dims: Any, kept: Any) -> Any:
    # PyTorch's amax and amin give nan where the result is nan, unlike its max and min.
    won = xp.cast(a == xp.reshape(out, kept), g.dtype)
    return xp.reshape(g, kept) * won / xp.sum_dims(won, dims, True)


_AMAX = Row("amax", _tied_rule_of_numbers)
_AMIN = Row("amin", _tied_rule_of_numbers)
_MAX = Row("max", tied_rule)
_MIN = Row("min", tied_rule)
_PICK = Row("pick", lambda xp, g, shape, dim, index, kept: xp.put_along(shape, dim, index, xp.reshape(g, kept)))


@operation(method=True)
def amax(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the largest element over ``dim``, nan if there is a nan; equal elements share the gradient.

    Args:
        input: any shape, real.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: there are no elements.
    """
    return _extreme("amax", _AMAX, np.maximum, input, dim, keepdim)


@operation(method=True)
def amin(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the smallest element over ``dim``, nan if there is a nan; equal elements share the gradient.

    Args:
        input: any shape, real.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: there are no elements.
    """
    return _extreme("amin", _AMIN, np.minimum, input, dim, keepdim)


@operation(method=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """Return the smallest and the largest element, ``amin`` and ``amax``.

    Args:
        input: any shape, real.
        dim: the dimension; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.

    Raises:
        TypeError: ``input`` is complex.
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
    """Return the largest element; with ``dim``, the largest elements and their indices; with a tensor, ``maximum``.

    Args:
        input: any shape, real.
        dim: the dimension, or a tensor to compare with; ``None`` for all elements.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        other: a tensor to compare with.

    Raises:
        TypeError: ``input`` is complex.
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
    """Return the smallest element; with ``dim``, the smallest elements and their indices; with a tensor, ``minimum``.

    Args:
        input: any shape, real.
        dim: the dimension, or a tensor to compare with; ``None`` for all elements.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        other: a tensor to compare with.

    Raises:
        TypeError: ``input`` is complex.
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
    """Return the index of the largest element in ``dim`` or in the flattened tensor, the first of equal ones, ``int64``.

    Args:
        input: any shape, real.
        dim: the dimension; ``None`` for the flattened tensor.
        keepdim: whether the dimensions that are reduced stay, with length 1.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: there are no elements.
    """
    return _index_of("argmax", np.argmax, input, dim, keepdim)


@operation(method=True)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the smallest element in ``dim`` or in the flattened tensor, the first of equal ones, ``int64``.

    Args:
        input: any shape, real.
        dim: the dimension; ``None`` for the flattened tensor.
        keepdim: whether the dimensions that are reduced stay, with length 1.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: there are no elements.
    """
    return _index_of("argmin", np.argmin, input, dim, keepdim)


def _extreme(name: str, row: Row, function: Any, input: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    x = ordered(name, input)
    dims = all_dims(dim, x.ndim)
    not_empty(name, x, dims)
    result = Tensor(function.reduce(x, dims, keepdims=keepdim))
    if records(input):
        record(row, result, (input,), (keep(input), keep_result(result)), dims, kept_shape(x.shape, dims))
    return result


def _index_of(name: str, function: Any, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    x = ordered(name, input)
    if dim is None:
        not_empty(name, x, range(x.ndim))
        index = np.asarray(function(x), np.int64)
        return Tensor(index.reshape((1,) * x.ndim) if keepdim else index)
    indices = _arg(name, function, input, dim)
    return Tensor(indices if keepdim or not x.ndim else indices.squeeze(one_dim(dim, x.ndim)))


def _arg(name: str, function: Any, input: Tensor, dim: int) -> Array:
    x = ordered(name, input)
    axis = one_dim(dim, x.ndim)
    not_empty(name, x, (axis,))
    return np.asarray(function(x, axis=axis, keepdims=True)) if x.ndim else np.zeros((), np.int64)


def pick(input: Tensor, indices: Array, dim: int, keepdim: bool) -> ValuesIndices:
    """Return the elements of ``input`` at ``indices`` in the dimension ``dim``, and the indices; recorded.

    Args:
        input: the tensor.
        indices: one index for each line; ``dim`` has length 1.
        dim: the dimension.
        keepdim: whether the dimensions that are reduced stay, with length 1.
    """
    x = input._array
    dim = one_dim(dim, x.ndim)
    values = np.take_along_axis(x, indices, dim) if x.ndim else x.copy()
    shown = indices
    if not keepdim and x.ndim:
        values, shown = values.squeeze(dim), indices.squeeze(dim)
    return watched_pair(picked(input, values, indices, dim), shown)


def watched_pair(values: Tensor, indices: Array) -> ValuesIndices:
    """Return both; the gradient of ``values`` needs the indices, which the caller may change in place."""
    shown = Tensor(indices)
    return ValuesIndices(watched(values, shown), shown)


def picked(input: Tensor, values: Array, indices: Array, dim: int) -> Tensor:
    """Return ``values``, which were read from ``input`` at ``indices`` in the dimension ``dim``, recorded."""
    if not input._array.ndim:
        return clone(input)
    result = Tensor(values)
    if records(input):
        record(_PICK, result, (input,), (), input._array.shape, dim, indices, indices.shape)
    return result


def ordered(name: str, input: Tensor) -> Array:
    """Return the array of ``input``, which must hold real numbers.

    Raises:
        TypeError: ``input`` is complex.
    """
    if input._array.dtype.kind == "c":
        raise TypeError(f"{name}() needs numbers that have an order, and you gave {input.dtype}")
    return input._array


def not_empty(name: str, x: Array, dims: Sequence[int]) -> None:
    """Check that none of the dimensions ``dims`` has length 0.

    Raises:
        ValueError: one of them has length 0.
    """
    for axis in dims:
        if axis < x.ndim and not x.shape[axis]:
            raise ValueError(f"{name}() needs elements, and you gave shape {x.shape}; give a dim that is not empty")
