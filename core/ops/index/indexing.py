"""``t[index]`` and ``t[index] = value``, and their forms as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...interception import active
from ...tensors import Operand, Tensor
from ...types import Array
from ..create.from_data import number_as
from ..elementwise.complex_numbers import real
from ..shape.reshaping import reshape
from ..table.operation import operation, published
from ..table.views import view_of
from ..table.watched import watched
from .array_elements import LinearIndex
from .elements import FULL, GET, PART, overwrite
from .elements import accumulate as accumulate_at
from .subscripts import integers, out_of_range, split_index

_PART = PART.row
_SHORT = 32  # items of a list that stands for a tuple, at most


@operation
def getitem(input: Tensor, index: Any) -> Tensor:
    """Return ``input[index]`` with PyTorch's meaning: a view for integers and slices, a copy for tensors, lists and masks.

    Raises:
        IndexError: the index is out of range, or of a type that cannot be an index.
        ValueError: a slice has a step that is not positive.
    """
    basic, advanced = split_index(index, input._array)
    if advanced is None:
        return part(input, Ellipsis if basic is None else basic)
    if basic is not None:
        input = part(input, basic)
    if input._requires_grad:
        advanced = _own(advanced, index)
    try:
        return watched(GET(input, advanced), index)
    except IndexError as error:
        raise out_of_range(error, input._array) from None


@published(operator="getitem")
def subscript(input: Tensor, index: Any) -> Tensor:
    """Return ``input[index]``, faster for an integer than ``getitem``: loops and datasets read tensors row by row."""
    if type(index) is int and not active:
        x = input._array
        if x.ndim and -len(x) <= index < len(x):
            where = index if x.ndim > 1 else (index, Ellipsis)  # for a vector, a 0-d view and not a number
            return view_of(input, x[where], _PART, (where,), (x.shape, where))
    return getitem(input, index)


def part(input: Tensor, index: Any) -> Tensor:
    """Return ``input[index]`` as a view, for an index of integers, slices, ``None`` and ``...``."""
    x = input._array
    try:
        out = x[index]
    except IndexError as error:
        raise out_of_range(error, x) from None
    if type(out) is not np.ndarray:
        # With "..." NumPy returns an element as a 0-d view; without, as a scalar, which is a copy.
        index = (*index, Ellipsis) if isinstance(index, tuple) else (index, Ellipsis)
        out = x[index]
    return view_of(input, out, _PART, (index,), (x.shape, index))


@operation(operator="setitem")
def setitem(input: Tensor, index: Any, value: Operand) -> None:
    """Write ``value`` to ``input[index]``, recorded.

    Args:
        input: any shape and dtype.
        index: integers, slices, ``None``, ``...``, tensors, lists or masks, or a tuple of them.
        value: a tensor or number, broadcast to ``input[index]``.

    Raises:
        AutogradError: ``input`` is a leaf that requires grad.
        IndexError: the index is out of range.
        ValueError: the shape of ``value`` cannot be broadcast to that of ``input[index]``.
        TypeError: ``value`` is a complex number, and ``input`` is not.
    """
    basic, advanced = split_index(index, input._array)
    if basic is None or advanced is None:
        _assign(input, Ellipsis if basic is advanced else basic if advanced is None else advanced, value, index)
    else:
        _assign(part(input, basic), advanced, value, index)


def _assign(input: Tensor, where: Any, value: Any, index: Any) -> None:
    x = input._array
    if isinstance(value, Tensor):
        if value._array.dtype.kind == "c" and x.dtype.kind not in "bc":
            value = real(value)
        if value._array.ndim and value._array.shape[0] == 1:
            value = _without_leading(value, x, where)
    elif isinstance(value, (bool, int, float, complex)):
        value = number_as(value, x.dtype)
    if input._requires_grad or (isinstance(value, Tensor) and value._requires_grad):
        where = _own(where, index)
    try:
        overwrite(input, where, value, True, index)
    except IndexError as error:
        raise out_of_range(error, x) from None
    except (TypeError, ValueError) as error:
        raise _unfit(error, x[where].shape, np.shape(getattr(value, "_array", value))) from None


def _own(where: Any, index: Any) -> Any:
    """Return ``where`` with copies of the NumPy arrays of ``index``: that these change later could not be noticed."""
    items = index[:_SHORT] if isinstance(index, (tuple, list)) else (index,)
    if not isinstance(where, tuple) or not any(isinstance(each, np.ndarray) for each in items):
        return where
    return tuple([each.copy() if isinstance(each, np.ndarray) else each for each in where])


def _unfit(error: Exception, shape: tuple[int, ...], given: tuple[int, ...]) -> Exception:
    try:
        fits = np.broadcast_shapes(shape, given) == shape
    except ValueError:
        fits = False
    # If the shapes fit, the reason is another one, as memory that is read-only.
    return error if fits else ValueError(f"a value of shape {given} cannot be broadcast to the indexed shape {shape}")


def _without_leading(value: Tensor, x: Array, where: Any) -> Tensor:
    # Additional dimensions of length 1 in front are allowed, as in PyTorch.
    try:
        extra = value.ndim - np.ndim(x[where])
    except IndexError as error:
        raise out_of_range(error, x) from None
    return part(value, (0,) * extra) if extra > 0 and value.shape[:extra] == (1,) * extra else value


@operation(method=True)
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of ``input`` with ``values`` written to ``input[indices]``, or added to it.

    Args:
        input: any shape and dtype.
        indices: one tensor of integers or booleans for each dimension; ``None`` for the whole dimension.
        values: broadcast to ``input[indices]``, of the dtype of ``input``.
        accumulate: whether values are added, as many times as an element is named; else they overwrite.

    Raises:
        IndexError: an index is out of range.
        TypeError: ``values`` has another dtype.
        ValueError: the shape of ``values`` does not fit.
    """
    return _index_put("index_put", input, indices, values, accumulate, False)


@operation(function=False, method=True)
def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """Change ``input`` as ``index_put`` does, and return it. Errors: those of ``index_put``.

    Args:
        input: any shape and dtype.
        indices: one tensor of integers or booleans for each dimension; ``None`` for the whole dimension.
        values: broadcast to ``input[indices]``, of the dtype of ``input``.
        accumulate: whether values are added, as many times as an element is named; else they overwrite.
    """
    return _index_put("index_put_", input, indices, values, accumulate, True)


def _index_put(name: str, input: Tensor, indices: Any, values: Tensor, accumulate: bool, in_place: bool) -> Tensor:
    if values.dtype != input.dtype:
        raise TypeError(f"{name}() needs values of the tensor's dtype {input.dtype}, and you gave {values.dtype}")
    index = tuple(FULL if each is None else each for each in indices)
    _, where = split_index(index, input._array)
    write = accumulate_at if accumulate else overwrite
    try:
        return write(input, Ellipsis if where is None else where, values, in_place, index=indices)
    except IndexError as error:
        raise out_of_range(error, input._array) from None


@operation(method=True)
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements ``index`` of the flattened tensor, in the shape of ``index``.

    Args:
        input: any shape and dtype.
        index: integers: indices in the flattened tensor; negative ones count from the end.
        out: where the result is written.

    Raises:
        IndexError: an index is out of range.
        TypeError: ``index`` does not hold integers.
    """
    return watched(GET(input, _linear_index("take", input._array, index)), index)


@operation(method=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of ``input`` with ``source`` written to the elements ``index`` of the flattened tensor, or added to them.

    Args:
        input: any shape and dtype.
        index: integers: indices in the flattened tensor; negative ones count from the end.
        source: as many values as ``index`` has elements.
        accumulate: whether values are added, as many times as an element is named; else they overwrite.

    Raises:
        IndexError: an index is out of range.
        TypeError: ``index`` does not hold integers.
        ValueError: ``source`` has another number of elements than ``index``.
    """
    return _put("put", input, index, source, accumulate, False)


@operation(function=False, method=True)
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Change ``input`` as ``put`` does, and return it. Errors: those of ``put``.

    Args:
        input: any shape and dtype.
        index: integers: indices in the flattened tensor; negative ones count from the end.
        source: as many values as ``index`` has elements.
        accumulate: whether values are added, as many times as an element is named; else they overwrite.
    """
    return _put("put_", input, index, source, accumulate, True)


def _put(name: str, input: Tensor, index: Tensor, source: Tensor, accumulate: bool, in_place: bool) -> Tensor:
    if source.numel() != index.numel():
        raise ValueError(f"{name}() needs as many values as indices, and you gave {source.numel()} and {index.numel()}")
    where = _linear_index(name, input._array, index)
    write = accumulate_at if accumulate else overwrite
    return write(input, where, reshape(source, index.shape), in_place, index=index)


def _linear_index(name: str, x: Array, index: Tensor) -> LinearIndex:
    indices = integers(name, index)
    if indices.size and (indices.min() < -x.size or indices.max() >= x.size):
        raise IndexError(
            f"{name}() got an index out of range: a tensor of {x.size} elements takes {-x.size} to {x.size - 1}"
        )
    return LinearIndex(np.where(indices < 0, indices + x.size, indices))
