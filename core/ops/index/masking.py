"""Selection by masks: ``where``, ``masked_fill``, ``masked_select``, ``masked_scatter``, ``nonzero``."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from ...dtypes import result_type
from ...tensors import Operand, Tensor
from ...types import Array
from ..create.from_data import as_tensor
from ..shape.reshaping import reshape
from ..table.array_functions import where as choose
from ..table.nodes import record, records
from ..table.operation import operation, published
from ..table.rows import Row
from ..table.watched import watched
from .elements import GET, overwrite

_WHERE = Row(
    "where",
    lambda xp, g, condition, a, b: xp.fit(xp.chosen(condition, g), *a),
    lambda xp, g, condition, a, b: xp.fit(xp.chosen(~condition, g), *b),
    holomorphic=False,
)


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Operand, other: Operand) -> Tensor: ...
@operation(function=True)
def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None) -> Any:
    """Return ``input`` where ``condition`` is true, and ``other`` elsewhere, of the shape of all three, broadcast.

    ``where(condition)`` is ``nonzero(condition, as_tuple=True)``.

    Args:
        condition: booleans.
        input: a tensor or number, converted to one dtype with ``other``.
        other: a tensor or number.

    Raises:
        TypeError: ``condition`` is not boolean.
        ValueError: the shapes cannot be broadcast together.
    """
    mask = condition._array if isinstance(condition, Tensor) else np.asarray(condition)
    if input is None or other is None:
        return nonzero(condition, as_tuple=True)
    if mask.dtype.kind != "b":
        raise TypeError(f"where() needs a boolean condition, not {mask.dtype}; compare, as in x != 0")
    dtype = _common(input, other)
    first, second = _operand(input, dtype), _operand(other, dtype)
    result = Tensor(choose(mask, first._array.astype(dtype, copy=False), second._array.astype(dtype, copy=False)))
    if records(first, second):
        shapes = ((first.shape, first.dtype), (second.shape, second.dtype))
        watched(record(_WHERE, result, (first, second), (), mask, *shapes), condition)
    return result


def _common(a: Any, b: Any) -> Any:
    """Return the dtype of both after promotion; usual cases have a shorter way."""
    one, other = (getattr(each, "_array", each) for each in (a, b))
    if type(one) is np.ndarray and (type(other) is float if one.dtype.kind == "f" else False):
        return one.dtype
    if type(one) is type(other) is np.ndarray and one.dtype is other.dtype:
        return one.dtype
    return result_type(a, b)


def _operand(value: Any, dtype: Any) -> Tensor:
    return value if isinstance(value, Tensor) else as_tensor(value, dtype)


@operation(method=True, in_place="overwrite")
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """Return a copy of ``input`` with ``value`` where ``mask`` is true, of the shape of both, broadcast.

    Args:
        input: any shape and dtype.
        mask: booleans.
        value: a number or a 0-d tensor.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: ``value`` has dimensions, or the shapes cannot be broadcast together.
    """
    x, chosen = input._array, _mask("masked_fill", mask)
    if isinstance(value, Tensor):
        if value.ndim:
            raise ValueError(f"masked_fill() takes a number or a 0-d tensor, and you gave shape {value.shape}")
        if value._requires_grad:
            return where(mask, value.to(x.dtype), input)
        value = value.item()
    result = Tensor(np.where(chosen, x.dtype.type(value), x))
    if records(input):
        watched(record(_FILL, result, (input,), (), chosen, (x.shape, x.dtype)), mask)
    return result


_FILL = Row("masked_fill", lambda xp, g, mask, target: xp.fit(xp.chosen(~mask, g), *target), holomorphic=False)


@operation(method=True)
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return a vector of the elements of ``input`` where ``mask`` is true, in row-major order.

    Args:
        input: any shape and dtype.
        mask: booleans, broadcast with ``input``.
        out: where the result is written.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: the shapes cannot be broadcast together.
    """
    chosen = _mask("masked_select", mask)
    shape = np.broadcast_shapes(chosen.shape, input.shape)
    if input.shape != shape:
        input = input.broadcast_to(shape)
    return reshape(watched(GET(input, (np.broadcast_to(chosen, shape),)), mask), -1)


@operation(method=True, in_place="overwrite")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy of ``input`` with elements of ``source``, in order, where ``mask`` is true.

    Args:
        input: any shape and dtype.
        mask: booleans, broadcast with ``input``.
        source: at least as many elements as ``mask`` has true ones, of the dtype of ``input``.

    Raises:
        TypeError: ``mask`` is not boolean, or ``source`` has another dtype.
        ValueError: ``source`` has too few elements, or the shapes cannot be broadcast together.
    """
    chosen = _mask("masked_scatter", mask)
    if source.dtype != input.dtype:
        raise TypeError(f"masked_scatter() needs a source of dtype {input.dtype}, and you gave {source.dtype}")
    shape = np.broadcast_shapes(chosen.shape, input.shape)
    chosen = np.broadcast_to(chosen, shape)
    count = int(np.count_nonzero(chosen))
    if source.numel() < count:
        raise ValueError(f"masked_scatter() needs {count} elements for the mask, and the source has {source.numel()}")
    wide = input if input.shape == shape else input.broadcast_to(shape)
    return overwrite(wide, (chosen,), reshape(source, -1)[:count], False, mask)


@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = ...) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@operation(method=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of elements that are not 0, int64: ``(count, ndim)``, or as a tuple of a vector for each dimension."""
    x = input._array if isinstance(input, Tensor) else np.asarray(input)
    if as_tuple:
        return tuple(Tensor(indices) for indices in np.nonzero(np.atleast_1d(x)))
    return Tensor(np.ascontiguousarray(np.argwhere(x)))


@operation(method=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """Return ``nonzero`` cut, or filled up with ``fill_value``, to ``size`` rows: int64, ``(size, ndim)``.

    Args:
        input: any shape and dtype.
        size: the number of rows.
        fill_value: what further rows hold.
        out: where the result is written.

    Raises:
        ValueError: ``size`` is negative.
    """
    if size < 0:
        raise ValueError(f"nonzero_static() needs a size from 0, and you gave {size}")
    found = np.argwhere(input._array)[:size]
    result = np.full((size, input.ndim), fill_value, np.int64)
    result[: len(found)] = found
    return Tensor(result)


@operation(method=True)
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of elements that are not 0, int64, ``(count, ndim)``."""
    return nonzero(input)


def _mask(name: str, mask: Tensor) -> Array:
    if not isinstance(mask, Tensor) or mask._array.dtype.kind != "b":
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{name}() needs a boolean tensor as mask, and you gave {kind}")
    return mask._array


@published(function=False, method="where")
def where_method(input: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """Return this tensor where ``condition`` is true, and ``other`` elsewhere: ``tg.where(condition, input, other)``.

    Args:
        input: any shape and dtype.
        condition: booleans.
        other: a tensor or number.
    """
    return where(condition, input, other)
