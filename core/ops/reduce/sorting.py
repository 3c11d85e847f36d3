"""Sorting, and operations that choose by order: top k, k-th value, median, mode and quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..create.from_data import as_tensor
from ..elementwise import arithmetic, rounding
from ..elementwise.conversion import clone
from ..index import masking, scatter
from ..shape import reshaping, transposing
from ..table.dims import ValuesIndices, one_dim
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.rows import Row
from .extremes import not_empty, ordered, pick, picked, tied_rule, watched_pair
from .reductions import needs_inexact

_CHOSEN = Row("median", tied_rule)


@operation(method=True)
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = False,
    *,
    out: tuple[Tensor, Tensor] | None = None,
) -> ValuesIndices:
    """Return the elements sorted in the dimension ``dim``, and their indices; nan counts as the largest number.

    Args:
        input: any shape, real.
        dim: the dimension to sort; the last by default.
        descending: whether the largest comes first.
        stable: has no effect: equal elements always keep their order.
        out: where the two results are written.

    Raises:
        TypeError: ``input`` is complex.
    """
    x = ordered("sort", input)
    axis = one_dim(dim, x.ndim)
    order = _order(x, axis, descending)
    values = np.take_along_axis(x, order, axis) if x.ndim else x.copy()
    return watched_pair(picked(input, values, order, axis), order)


@operation(method=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the indices that sort the elements in the dimension ``dim``, ``int64``.

    Args:
        input: any shape, real.
        dim: the dimension to sort; the last by default.
        descending: whether the largest comes first.
        stable: has no effect: equal elements always keep their order.

    Raises:
        TypeError: ``input`` is complex.
    """
    x = ordered("argsort", input)
    return Tensor(_order(x, one_dim(dim, x.ndim), descending))


@operation(method=True)
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements sorted in the first dimension.

    Raises:
        TypeError: ``input`` is complex.
    """
    return sort(input, 0).values


@operation(method=True)
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: tuple[Tensor, Tensor] | None = None,
) -> ValuesIndices:
    """Return the ``k`` largest (or smallest) elements in the dimension ``dim``, sorted, and their indices.

    Args:
        input: any shape, real.
        k: number of elements.
        dim: the dimension; the last by default.
        largest: whether to return the largest elements; the smallest if not.
        sorted: has no effect: the result is always sorted.
        out: where the two results are written.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: there are fewer than ``k`` elements, or ``k`` is too small.
    """
    x = ordered("topk", input)
    axis = one_dim(dim, x.ndim)
    length = x.shape[axis] if x.ndim else 1
    if not 0 <= k <= length:
        raise ValueError(f"topk() cannot choose {k} of the {length} elements in dim {dim}")
    if not x.ndim:
        return ValuesIndices(clone(input), Tensor(np.zeros((), np.int64)))
    indices = _first(x, k, axis, largest)
    return watched_pair(picked(input, np.take_along_axis(x, indices, axis), indices, axis), indices)


@operation(method=True)
def kthvalue(
    input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> ValuesIndices:
    """Return the ``k``-th smallest element in the dimension ``dim``, and its index.

    Args:
        input: any shape, real.
        k: rank of the element, from 1.
        dim: the dimension; the last by default.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the two results are written.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: there are fewer than ``k`` elements, or ``k`` is too small.
    """
    x = ordered("kthvalue", input)
    axis = one_dim(dim, x.ndim)
    length = x.shape[axis] if x.ndim else 1
    if not 1 <= k <= length:
        raise ValueError(f"kthvalue() takes k from 1 to {length}, the length of dim {dim}, and you gave {k}")
    return pick(input, _at(_partition(x, k - 1, axis), k - 1, axis), axis, keepdim)


@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(input: Tensor, dim: int, keepdim: bool = ...) -> ValuesIndices: ...
@operation(method=True)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | ValuesIndices:
    """Return the median, the lower of two middle elements; with ``dim``, medians and their indices. nan if there is a nan.

    Args:
        input: any shape, real.
        dim: the dimension; all elements if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: the dimension has length 0.
    """
    return _median("median", input, dim, keepdim, skip=False)


@overload
def nanmedian(input: Tensor) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = ...) -> ValuesIndices: ...
@operation(method=True)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | ValuesIndices:
    """Return the median of the elements that are not nan; with ``dim``, medians and their indices.

    Args:
        input: any shape, real.
        dim: the dimension; all elements if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: the dimension has length 0.
    """
    return _median("nanmedian", input, dim, keepdim, skip=True)


def _median(name: str, input: Tensor, dim: int | None, keepdim: bool, *, skip: bool) -> Tensor | ValuesIndices:
    x = ordered(name, input)
    if dim is None:
        result = Tensor(_middle_of_all(x, skip))
        if records(input):
            saved = (keep(input), keep_result(result))
            record(_CHOSEN, result, (input,), saved, tuple(range(x.ndim)), (1,) * x.ndim)
        return result
    axis = one_dim(dim, x.ndim)
    not_empty(name, x, (axis,))
    indices = _middle(x, axis, skip) if x.ndim else np.zeros((), np.int64)
    return pick(input, indices, axis, keepdim)


def _middle_of_all(x: Array, skip: bool) -> Array:
    flat = x.reshape(-1)
    if not flat.size:
        # Of no integers it is nan converted to the dtype, as in PyTorch: with signs, the smallest number.
        of_none: Any = {"i": lambda: np.iinfo(x.dtype).min, "u": lambda: 0, "b": lambda: True}
        return np.asarray(of_none[x.dtype.kind]() if x.dtype.kind in of_none else np.nan, x.dtype)
    return flat[_middle(flat, 0, skip)].reshape(())


def _middle(x: Array, axis: int, skip: bool) -> Array:
    length = x.shape[axis]
    nans = np.isnan(x).sum(axis=axis, keepdims=True)
    if not nans.any():
        return np.take(_partition(x, (length - 1) // 2, axis), [(length - 1) // 2], axis)
    order = _order(x, axis, False)
    # Nans are sorted to the end: unless they are skipped, the first nan is the median.
    index = np.maximum(length - nans - 1, 0) // 2 if skip else np.where(nans > 0, length - nans, (length - 1) // 2)
    return np.take_along_axis(order, index, axis)


@operation(method=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """Return the most frequent element in the dimension ``dim`` (the smallest if there is a tie), and its last index.

    Args:
        input: any shape, real.
        dim: the dimension; the last by default.
        keepdim: whether the dimensions that are reduced stay, with length 1.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: the dimension has length 0.
    """
    x = ordered("mode", input)
    axis = one_dim(dim, x.ndim)
    not_empty("mode", x, (axis,))
    if not x.ndim:
        return pick(input, np.zeros((), np.int64), 0, keepdim)
    order = _order(x, axis, False)
    runs = np.moveaxis(np.take_along_axis(x, order, axis), axis, -1)
    starts = np.concatenate([np.ones((*runs.shape[:-1], 1), bool), runs[..., 1:] != runs[..., :-1]], -1)
    indices = np.arange(runs.shape[-1])
    lengths = indices - np.maximum.accumulate(np.where(starts, indices, 0), -1)
    last = np.moveaxis(lengths.argmax(-1)[..., None], -1, axis)
    return pick(input, np.take_along_axis(order, last, axis), axis, keepdim)


@operation(method=True)
def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Return the ``q``-quantile over ``dim`` or of all elements; nan if there is a nan.

    Args:
        q: the probability, 0 to 1; a vector of probabilities adds a first dimension to the result.
        interpolation: the value between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
        input: any shape, real.
        dim: the dimension; all elements if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.

    Raises:
        TypeError: ``input`` is not floating-point.
        ValueError: ``q`` or ``interpolation`` is none of these, or there are no elements.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, skip=False)


@operation(method=True)
def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Return the ``q``-quantile of the elements that are not nan, over ``dim`` or of all elements.

    Args:
        input: any shape, real.
        q: the probability, 0 to 1; a vector of probabilities adds a first dimension to the result.
        dim: the dimension; all elements if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        interpolation: the value between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
        out: where the result is written.

    Raises:
        TypeError: ``input`` is not floating-point.
        ValueError: ``q`` or ``interpolation`` is none of these, or there are no elements.
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, skip=True)


_BETWEEN: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda rank: rank,
    "lower": rounding.floor,
    "higher": rounding.ceil,
    "nearest": rounding.round,
    "midpoint": lambda rank: (rounding.floor(rank) + rounding.ceil(rank)) / 2,
}


def _quantile(name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, *, skip: bool) -> Tensor:
    x = needs_inexact(name, input)
    if interpolation not in _BETWEEN:
        raise ValueError(f"interpolation must be one of {', '.join(_BETWEEN)}, and you gave {interpolation!r}")
    levels = as_tensor(q, x.dtype)
    if levels._array.ndim > 1 or not ((levels._array >= 0) & (levels._array <= 1)).all():
        raise ValueError(f"{name}() takes q between 0 and 1, a number or a vector, and you gave {q!r}")
    flat = reshaping.reshape(input, (-1,)) if dim is None else input
    axis = one_dim(0 if dim is None else dim, flat._array.ndim)
    not_empty(name, flat._array, (axis,))
    lines = transposing.transpose(flat, axis, -1) if flat._array.ndim else reshaping.reshape(flat, (1,))
    result = _interpolated(lines, reshaping.reshape(levels, (-1,)), _BETWEEN[interpolation], skip)
    kept = [1] * x.ndim if dim is None else [1 if each == axis else n for each, n in enumerate(x.shape)]
    shape = kept if keepdim else [] if dim is None else [n for each, n in enumerate(x.shape) if each != axis]
    result = transposing.transpose(reshaping.unsqueeze(result, 0), 0, -1)  # (q, ..., 1): the last dimension comes first
    if lines._array.ndim > 1 and axis != lines._array.ndim - 1:
        result = transposing.transpose(result, axis + 1, -1)
    return reshaping.reshape(result, list(levels.shape) + list(shape))


def _interpolated(lines: Tensor, levels: Tensor, between: Callable[[Tensor], Tensor], skip: bool) -> Tensor:
    inside = sort(lines, -1).values
    x = lines._array
    nans = np.isnan(x).sum(axis=-1, keepdims=True)
    last = x.shape[-1] - 1
    ranks = between(levels * Tensor(np.maximum(last - nans * skip, 0).astype(x.dtype)))
    if not skip:  # nans are sorted to the end
        ranks = masking.where(Tensor(nans > 0), Tensor(np.asarray(last, x.dtype)), ranks)
    low, high = np.floor(ranks._array).astype(np.int64), np.ceil(ranks._array).astype(np.int64)
    below, above = scatter.gather(inside, -1, Tensor(low)), scatter.gather(inside, -1, Tensor(high))
    # An infinity minus itself would be nan.
    between_them = arithmetic.lerp(below, above, ranks - rounding.floor(ranks))
    stuck = np.isinf(below._array) & (below._array == above._array)
    return masking.where(Tensor(stuck), below, between_them) if stuck.any() else between_them


def _order(x: Array, axis: int, descending: bool) -> Array:
    if not x.ndim:
        return np.zeros((), np.int64)
    if x.dtype.kind == "V":  # NumPy would sort nans of bfloat16 to the start
        x = x.astype(np.float32)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    # Sorted in reverse, so that equal elements keep their order.
    backward = np.argsort(np.flip(x, axis), axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - backward, axis)


def _first(x: Array, k: int, axis: int, descending: bool) -> Array:
    """Return the indices of the first ``k`` elements in order; of elements equal to the last one, any may be chosen."""
    length = x.shape[axis]
    if not k or 4 * k > length:
        return np.take(_order(x, axis, descending), np.arange(k), axis)
    if descending:
        found = np.take(_partition(x, length - k - 1, axis), np.arange(length - k, length), axis)
    else:
        found = np.take(_partition(x, k, axis), np.arange(k), axis)
    found.sort(axis)  # so that equal elements keep their order
    return np.take_along_axis(found, _order(np.take_along_axis(x, found, axis), axis, descending), axis)


def _partition(x: Array, index: int, axis: int) -> Array:
    """Return indices that put the element at ``index`` where it is in sorted order, with the smaller ones before it."""
    if not x.ndim:
        return np.zeros((), np.int64)
    return np.argpartition(x.astype(np.float32) if x.dtype.kind == "V" else x, index, axis)


def _at(order: Array, index: int, axis: int) -> Array:
    return np.take(order, [index], axis) if order.ndim else order
