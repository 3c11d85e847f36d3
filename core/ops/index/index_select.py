"""Reading and writing slices along one dimension: ``index_select``, ``index_add``, ``select_scatter``, ``embedding``, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensors import Operand, Tensor
from ...types import Array
from ..create.from_data import number_as
from ..table.dims import one_dim
from ..table.operation import operation
from .array_elements import Flat, linear_places
from .elements import FULL, GET, accumulate, overwrite
from .indexing import part
from .scatter_reduce import REDUCTIONS, reduced
from .subscripts import integers, within


@operation(method=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of the slice number ``index`` along ``dim``, without that dimension.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension that ``index`` counts along.
        index: which slice.

    Raises:
        IndexError: ``dim`` or ``index`` is out of range.
    """
    if not input._array.ndim:
        raise IndexError("select() needs a tensor with dimensions, and this one is 0-d")
    return part(input, (FULL,) * one_dim(dim, input._array.ndim) + (index.__index__(),))


@operation(method=True)
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return a copy of the slices along ``dim`` that the integers ``index``, a vector, name.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension that ``index`` counts along.
        index: a vector of integers: the slices.
        out: where the result is written.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``index`` does not hold integers.
    """
    if not input._array.ndim:
        if index.numel() != 1:
            raise IndexError(f"index_select() of a 0-d tensor takes one index, and yours has shape {index.shape}")
        return GET(input, _of_scalar("index_select", dim, index))
    return GET(input, _where("index_select", input._array, dim, index))


@operation(method=True)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Return a copy with ``alpha`` times the slices of ``source`` added to those along ``dim`` that ``index`` names.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension that ``index`` counts along.
        index: a vector of integers: the slices.
        source: as many slices as ``index`` names, of the dtype of ``input``.
        alpha: factor of ``source``.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``index`` does not hold integers, or ``source`` is of another dtype.
        ValueError: the shape of ``source`` does not fit.
    """
    return accumulate(input, *_for_writing("index_add", input, dim, index, source), False, alpha)


@operation(function=False, method=True)
def index_add_(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """``index_add`` in place.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension that ``index`` counts along.
        index: a vector of integers: the slices.
        source: as many slices as ``index`` names, of the dtype of ``input``.
        alpha: factor of ``source``.
    """
    return accumulate(input, *_for_writing("index_add_", input, dim, index, source), True, alpha)


@operation(method=True)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the slices of ``source`` for those along ``dim`` that ``index`` names. Errors as of ``index_add``.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension that ``index`` counts along.
        index: a vector of integers: the slices.
        source: as many slices as ``index`` names, of the dtype of ``input``.
    """
    return overwrite(input, *_for_writing("index_copy", input, dim, index, source), False)


@operation(function=False, method=True)
def index_copy_(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``index_copy`` in place.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension that ``index`` counts along.
        index: a vector of integers: the slices.
        source: as many slices as ``index`` names, of the dtype of ``input``.
    """
    return overwrite(input, *_for_writing("index_copy_", input, dim, index, source), True)


@operation(method=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """Return a copy with ``value``, a number or 0-d tensor, in the slices along ``dim`` that ``index`` names.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension that ``index`` counts along.
        index: a vector of integers: the slices.
        value: a number or a 0-d tensor.

    Raises:
        IndexError: ``dim`` or an index is out of range.
        TypeError: ``index`` does not hold integers.
        ValueError: ``value`` has dimensions.
    """
    return overwrite(input, *_for_filling("index_fill", input, dim, index, value), False)


@operation(function=False, method=True)
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """``index_fill`` in place.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension that ``index`` counts along.
        index: a vector of integers: the slices.
        value: a number or a 0-d tensor.
    """
    return overwrite(input, *_for_filling("index_fill_", input, dim, index, value), True)


@operation(function=True)
def embedding(weight: Tensor, rows: Tensor) -> Tensor:
    """Return the rows of the matrix ``weight`` that ``rows``, an integer tensor of any shape, names.

    Raises:
        IndexError: a row is out of range.
        TypeError: ``rows`` does not hold integers.
    """
    places, table = integers("embedding", rows), weight._array
    if places.size and (places.min() < 0 or places.max() >= table.shape[0]):
        wrong = places[(places < 0) | (places >= table.shape[0])].flat[0]
        raise IndexError(
            f"embedding() got row {wrong}, outside 0..{table.shape[0] - 1}: the table has {table.shape[0]} rows"
        )
    return GET(weight, (places,))


def _where(name: str, x: Array, dim: int, index: Tensor) -> tuple[Any, ...]:
    axis = one_dim(dim, x.ndim)
    places = integers(name, index)
    if places.ndim > 1:
        raise IndexError(f"{name}() needs a vector of indices, and yours has shape {places.shape}")
    within(name, places, axis, x.shape[axis])
    return (FULL,) * axis + (places.reshape(-1),)


def _of_scalar(name: str, dim: int, index: Tensor) -> tuple[Any, ...]:
    """Return the index into a 0-d tensor, which counts as a vector of one element."""
    one_dim(dim, 0)
    places = integers(name, index)
    within(name, places, 0, 1)
    return () if places.size else (np.zeros((), bool),)


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
    if index.dtype.kind == "i":  # negative ones count from the end, here and not in its kin, as in PyTorch
        index = Tensor(np.where(index._array < 0, index._array + x.shape[one_dim(dim, x.ndim)], index._array))
    *before, places = _where(name, x, dim, index)
    return (*before, np.unique(places)), value  # each once, or the gradient of the value would count some twice


@operation(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of ``input`` with ``src`` at ``index`` along ``dim``.

    Args:
        input: at least 1-d, any dtype.
        src: what is written, of the shape of the slices.
        dim: the dimension that ``index`` counts along.
        index: which slice.

    Raises:
        IndexError: there is no such dimension or index.
        ValueError: ``src`` has another shape than what it replaces.
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
    """Return a copy of ``input`` with ``src`` at ``start:end:step`` along ``dim``. Errors: those of ``select_scatter``.

    Args:
        input: at least 1-d, any dtype.
        src: what is written, of the shape of the slices.
        dim: the dimension that ``index`` counts along.
        start: the first slice; ``None`` for 0.
        end: the slice before which to end; ``None`` for the length.
        step: distance of the slices.
    """
    return _replaced("slice_scatter", input, src, (FULL,) * one_dim(dim, input.ndim) + (slice(start, end, step),))


def _replaced(name: str, input: Tensor, src: Tensor, where: tuple[Any, ...]) -> Tensor:
    region = input._array[where].shape
    if src.shape != region:
        raise ValueError(f"{name}() needs a src of shape {region}, that of what it replaces, and you gave {src.shape}")
    return overwrite(input, where, src, False)


@operation(method=True, in_place=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return slices of ``source`` along ``dim`` reduced into those of ``input`` that ``index`` names.

    Args:
        input: what the result begins with.
        dim: along which dimension.
        index: integers, one for each slice of ``source``.
        source: of the shape of ``input``, but as long as ``index`` along ``dim``.
        reduce: ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
        include_self: whether the elements of ``input`` count too where something is reduced into them.

    Raises:
        IndexError: an index is out of range.
        ValueError: the shapes do not fit, or another ``reduce``.
    """
    if reduce not in REDUCTIONS[1:]:
        raise ValueError(f"index_reduce() takes reduce {', '.join(REDUCTIONS[1:])}, and you gave {reduce!r}")
    axis = one_dim(dim, input.ndim)
    shape = input.shape
    wanted = (*shape[:axis], *index.shape, *shape[axis + 1 :])
    if index.ndim > 1 or source.shape != wanted:
        raise ValueError(f"index_reduce() needs a source of shape {wanted}, and you gave {source.shape}")
    rows = integers("index_reduce", index)
    within("index_reduce", rows, dim, shape[axis])
    where = (FULL,) * axis + (np.atleast_1d(rows),)
    return reduced(input, Flat(linear_places(shape, where)), source, reduce, include_self)
