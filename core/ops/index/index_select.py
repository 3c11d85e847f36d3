"""Reading and writing slices of one dimension: ``index_select``, ``index_add``, ``select_scatter``, ``embedding``, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array_like import holds, within
from ...tensors import Operand, Tensor
from ...types import Array
from ..create.from_data import number_as
from ..shape.reshaping import reshape
from ..table.dims import one_dim
from ..table.operation import operation
from ..table.watched import watched
from .array_elements import LinearIndex, linear_index
from .elements import FULL, GET, accumulate, overwrite
from .indexing import part
from .scatter_reduce import REDUCTIONS, reduced
from .subscripts import check_range, integers


@operation(method=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of the slice ``index`` of dimension ``dim``, without that dimension.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension; negative ones count from the end.
        index: the slice; negative ones count from the end.

    Raises:
        IndexError: ``dim`` or ``index`` is out of range.
    """
    if not input._array.ndim:
        raise IndexError("select() needs a tensor with dimensions, and this one is 0-d")
    return part(input, (FULL,) * one_dim(dim, input._array.ndim) + (index.__index__(),))


@operation(method=True)
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return a copy of the slices ``index`` of dimension ``dim``, which gets the length of ``index``.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension; negative ones count from the end.
        index: a vector of integers from 0: the slices.
        out: where the result is written.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``index`` does not hold integers.
    """
    if not input._array.ndim:
        if index.numel() != 1:
            raise IndexError(f"index_select() of a 0-d tensor takes one index, and yours has shape {index.shape}")
        return GET(input, _of_scalar("index_select", dim, index))
    return watched(GET(input, _where("index_select", input._array, dim, index)), index)


@operation(method=True)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Return a copy of ``input`` with ``alpha`` times the slices of ``source`` added to the slices ``index`` of ``dim``.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension; negative ones count from the end.
        index: a vector of integers from 0: the slices; those named more than once are added to more than once.
        source: shape of ``input`` with the length of ``index`` in ``dim``, of the dtype of ``input``.
        alpha: factor of ``source``.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``index`` does not hold integers, or ``source`` is of another dtype.
        ValueError: the shape of ``source`` does not fit.
    """
    return accumulate(input, *_for_writing("index_add", input, dim, index, source), False, alpha, index)


@operation(function=False, method=True)
def index_add_(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Change ``input`` as ``index_add`` does, and return it. Errors: those of ``index_add``.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension; negative ones count from the end.
        index: a vector of integers from 0: the slices; those named more than once are added to more than once.
        source: shape of ``input`` with the length of ``index`` in ``dim``, of the dtype of ``input``.
        alpha: factor of ``source``.
    """
    return accumulate(input, *_for_writing("index_add_", input, dim, index, source), True, alpha, index)


@operation(method=True)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of ``input`` with the slices of ``source`` written to the slices ``index``. Errors: ``index_add``'s.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension; negative ones count from the end.
        index: a vector of integers from 0: the slices.
        source: shape of ``input`` with the length of ``index`` in ``dim``, of the dtype of ``input``.
    """
    return overwrite(input, *_for_writing("index_copy", input, dim, index, source), False, index)


@operation(function=False, method=True)
def index_copy_(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Change ``input`` as ``index_copy`` does, and return it. Errors: those of ``index_add``.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension; negative ones count from the end.
        index: a vector of integers from 0: the slices.
        source: shape of ``input`` with the length of ``index`` in ``dim``, of the dtype of ``input``.
    """
    return overwrite(input, *_for_writing("index_copy_", input, dim, index, source), True, index)


@operation(method=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """Return a copy of ``input`` with ``value`` in all elements of the slices ``index`` of dimension ``dim``.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension; negative ones count from the end.
        index: a vector of integers: the slices; negative ones count from the end.
        value: a number or a 0-d tensor.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``index`` does not hold integers.
        ValueError: ``value`` has dimensions.
    """
    return overwrite(input, *_for_filling("index_fill", input, dim, index, value), False, index)


@operation(function=False, method=True)
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """Change ``input`` as ``index_fill`` does, and return it. Errors: those of ``index_fill``.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension; negative ones count from the end.
        index: a vector of integers: the slices; negative ones count from the end.
        value: a number or a 0-d tensor.
    """
    return overwrite(input, *_for_filling("index_fill_", input, dim, index, value), True, index)


@operation(function=True)
def embedding(weight: Tensor, rows: Tensor) -> Tensor:
    """Return the rows of a matrix ``weight`` ``(n, m)`` that the integers ``rows`` name: shape ``(*rows.shape, m)``.

    Raises:
        IndexError: a row is out of range.
        TypeError: ``rows`` does not hold integers.
    """
    indices, table = integers("embedding", rows), weight._array
    if indices.size and not holds(within, indices, table.shape[0]):
        wrong = indices[(indices < 0) | (indices >= table.shape[0])].flat[0]
        raise IndexError(
            f"embedding() got row {wrong}, outside 0..{table.shape[0] - 1}: the table has {table.shape[0]} rows"
        )
    return watched(GET(weight, (indices,)), rows)


def _where(name: str, x: Array, dim: int, index: Tensor) -> tuple[Any, ...]:
    axis = one_dim(dim, x.ndim)
    indices = integers(name, index)
    if indices.ndim > 1:
        raise IndexError(f"{name}() needs a vector of indices, and yours has shape {indices.shape}")
    check_range(name, indices, axis, x.shape[axis])
    return (FULL,) * axis + (indices.reshape(-1),)


def _of_scalar(name: str, dim: int, index: Tensor) -> tuple[Any, ...]:
    """Return the index into a 0-d tensor, which counts as a vector of one element."""
    one_dim(dim, 0)
    indices = integers(name, index)
    check_range(name, indices, 0, 1)
    return () if indices.size else (np.zeros((), bool),)


def _for_writing(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple[Any, Tensor]:
    x = input._array
    if source._array.dtype != x.dtype:
        raise TypeError(f"{name}() needs a source of the tensor's dtype {x.dtype}, and you gave {source.dtype}")
    if not x.ndim:
        return _of_scalar(name, dim, index), source.reshape(())
    where = _where(name, x, dim, index)
    wanted = (*x.shape[: len(where) - 1], where[-1].size, *x.shape[len(where) :])
    if source.shape != wanted and not (source.ndim == 0 and wanted == (1,)):
        raise ValueError(f"{name}() needs a source of shape {wanted} here, and you gave {source.shape}")
    return where, source


def _for_filling(name: str, input: Tensor, dim: int, index: Tensor, value: Any) -> tuple[Any, Any]:
    if isinstance(value, Tensor) and value.ndim:
        raise ValueError(f"{name}() takes a number or a 0-d tensor as value, and you gave shape {value.shape}")
    x = input._array
    if not isinstance(value, Tensor):
        value = number_as(value, x.dtype)
    if not x.ndim:
        return _of_scalar(name, dim, index), value
    if index.dtype.kind == "i":  # only here negative ones count from the end, as in PyTorch
        index = Tensor(np.where(index._array < 0, index._array + x.shape[one_dim(dim, x.ndim)], index._array))
    *before, indices = _where(name, x, dim, index)
    # Each once, or the gradient of the value would count some more than once.
    return (*before, np.unique(indices)), value


@operation(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of ``input`` with ``src`` in the slice ``index`` of dimension ``dim``.

    Args:
        input: at least 1-d, any dtype.
        src: shape of ``input`` without ``dim``.
        dim: the dimension; negative ones count from the end.
        index: the slice; negative ones count from the end.

    Raises:
        IndexError: there is no such dimension or slice.
        ValueError: ``src`` has another shape.
    """
    axis = one_dim(dim, input.ndim)
    length = input.shape[axis]
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for dim {dim} of length {length}")
    return _replaced("select_scatter", input, src, (FULL,) * axis + (index,))


@operation(method=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy of ``input`` with ``src`` in the slices ``start:end:step`` of ``dim``. Errors: ``select_scatter``'s.

    Args:
        input: at least 1-d, any dtype.
        src: shape of ``input`` with the number of these slices in ``dim``.
        dim: the dimension; negative ones count from the end.
        start: the first slice; 0 if ``None``.
        end: the end of the slices, not one of them; the length if ``None``.
        step: step from one slice to the next.
    """
    return _replaced("slice_scatter", input, src, (FULL,) * one_dim(dim, input.ndim) + (slice(start, end, step),))


def _replaced(name: str, input: Tensor, src: Tensor, where: tuple[Any, ...]) -> Tensor:
    region = input._array[where].shape
    if src.shape != region:
        raise ValueError(f"{name}() needs a src of shape {region}, that of the slices, and you gave {src.shape}")
    return overwrite(input, where, src, False)


@operation(method=True, in_place=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy of ``input`` with the slices of ``source`` combined in the slices ``index`` of dimension ``dim``.

    Args:
        input: at least 1-d, any real dtype; complex for "prod" and "mean".
        dim: the dimension; negative ones count from the end.
        index: a vector of integers from 0: the slice of ``input`` for each slice of ``source``.
        source: shape of ``input`` with the length of ``index`` in ``dim``.
        reduce: "prod", "mean", "amax" or "amin".
        include_self: whether elements of ``input`` are combined with those of ``source``; else they are replaced.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``index`` does not hold integers.
        ValueError: the shapes do not fit, or another ``reduce``.
    """
    if reduce not in REDUCTIONS[1:]:
        raise ValueError(f"index_reduce() takes reduce {', '.join(REDUCTIONS[1:])}, and you gave {reduce!r}")
    if not input.shape and index.shape == (1,) and not source.shape:
        return reshape(
            index_reduce(reshape(input, (1,)), dim, index, reshape(source, (1,)), reduce, include_self=include_self), ()
        )
    axis = one_dim(dim, input.ndim)
    shape = input.shape
    wanted = (*shape[:axis], *index.shape, *shape[axis + 1 :])
    if index.ndim > 1 or source.shape != wanted:
        raise ValueError(f"index_reduce() needs a source of shape {wanted}, and you gave {source.shape}")
    rows = integers("index_reduce", index)
    check_range("index_reduce", rows, dim, shape[axis])
    where = (FULL,) * axis + (np.atleast_1d(rows),)
    return reduced(input, LinearIndex(linear_index(shape, where)), source, reduce, include_self)
