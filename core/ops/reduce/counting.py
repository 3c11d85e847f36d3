"""Counting and looking up: distinct elements, histograms, places in sorted sequences. None is differentiable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import result_type
from ...tensors import Operand, Tensor
from ...types import Array
from ..table.dims import one_dim
from ..table.operation import operation
from .extremes import ordered


@operation(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements in order, or the distinct slices along ``dim``.

    With ``return_inverse``, also where each element went; with ``return_counts``, also how often each came.

    Args:
        input: any shape.
        sorted: has no effect: the result is always in order.
        return_inverse: whether to return where each element is in the result too.
        return_counts: whether to return how often each occurs too.
        dim: the dimension of the slices; ``None`` for elements.
    """
    x = ordered("unique", input)
    axis = None if dim is None else one_dim(dim, x.ndim)
    values, inverse, counts = np.unique(
        x, return_inverse=True, return_counts=True, axis=axis, equal_nan=axis is not None
    )
    return _chosen(values, inverse.reshape(x.shape if axis is None else -1), counts, return_inverse, return_counts)


@operation(method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements without those that equal their predecessor, or the slices along ``dim``.

    With ``return_inverse``, also where each element went; with ``return_counts``, also how often each came.

    Args:
        input: any shape.
        return_inverse: whether to return where each element is in the result too.
        return_counts: whether to return the lengths of the runs too.
        dim: the dimension of the slices; ``None`` for elements.
    """
    x = input._array
    axis = 0 if dim is None else one_dim(dim, x.ndim)
    lines = x.reshape(-1) if dim is None else x
    rows = np.moveaxis(lines, axis, 0)
    rows = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    starts = np.concatenate([np.ones(len(rows[:1]), bool), (rows[1:] != rows[:-1]).any(-1)])
    places = np.flatnonzero(starts)
    counts = np.diff(np.append(places, len(rows)))
    inverse = np.cumsum(starts) - 1
    return _chosen(
        np.take(lines, places, axis),
        inverse.reshape(x.shape) if dim is None else inverse,
        counts,
        return_inverse,
        return_counts,
    )


def _chosen(values: Array, inverse: Array, counts: Array, with_inverse: bool, with_counts: bool) -> Any:
    results = [Tensor(values)]
    if with_inverse:
        results.append(Tensor(inverse.astype(np.int64, copy=False)))
    if with_counts:
        results.append(Tensor(counts.astype(np.int64, copy=False)))
    return tuple(results) if len(results) > 1 else results[0]


@operation(method=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each of the numbers 0, 1, ... occurs in a vector of integers, or the sum of their ``weights``.

    Args:
        input: a vector of integers of 0 or more.
        weights: a number for each element, added instead of 1.
        minlength: smallest length of the result.

    Raises:
        TypeError: not integers.
        ValueError: not a vector, or a negative number.
    """
    x = input._array
    if x.dtype.kind not in "iu":
        raise TypeError(f"bincount() counts integers, and you gave {input.dtype}")
    if x.ndim != 1 or (x.size and x.min() < 0) or (weights is not None and weights.shape != input.shape):
        raise ValueError(f"bincount() needs a vector of numbers from 0 and weights of its shape, not {input.shape}")
    if minlength < 0:
        raise ValueError(f"bincount() needs a minlength that is not negative, and you gave {minlength}")
    if weights is None:
        return Tensor(np.bincount(x, minlength=minlength).astype(np.int64))
    counts = np.bincount(x, weights._array, minlength)
    return Tensor(counts.astype(np.float32 if weights.dtype == np.float32 else np.float64))


@operation(method=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """Return how many elements are in each of ``bins`` equal intervals from ``min`` to ``max`` (of the elements', if equal).

    Args:
        input: any shape.
        bins: number of intervals.
        min: lower end of the first interval.
        max: upper end of the last interval.
        out: where the result is written.

    Raises:
        ValueError: ``bins`` is not positive, or a bound is not finite or above the other.
    """
    x = ordered("histc", input)
    low, high = float(min), float(max)
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if bins <= 0 or not (np.isfinite([low, high]).all() and low < high):
        raise ValueError(f"histc() needs bins > 0 and finite min < max, and you gave {bins}, {low} and {high}")
    inside = x[(x >= low) & (x <= high)].astype(np.float64)
    places = np.minimum(((inside - low) / (high - low) * bins).astype(np.int64), bins - 1)
    return Tensor(np.bincount(places, minlength=bins).astype(x.dtype))


class Histogram(NamedTuple):
    """Result of ``histogram``."""

    hist: Tensor
    bin_edges: Tensor


@operation(method=True)
def histogram(
    input: Tensor,
    bins: int | Tensor,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Return how many elements are in each interval, and the intervals' ends.

    Args:
        input: what is counted, of floating point.
        bins: how many intervals of one length, or all ends in order.
        range: from where to where, by default from the smallest to the largest element.
        weight: how much each element counts.
        density: divide by the sum and by the lengths, so that the integral is 1.

    Raises:
        TypeError: not of floating point.
        ValueError: no intervals, ends in no order, or weights of another shape.
    """
    x = ordered("histogram", input)
    if x.dtype.kind != "f":
        raise TypeError(f"histogram() takes floating-point numbers, not {input.dtype}")
    if weight is not None and weight.shape != input.shape:
        raise ValueError(f"histogram() needs weights of shape {input.shape}, and you gave {weight.shape}")
    ends: Any = bins._array if isinstance(bins, Tensor) else bins
    weights = None if weight is None else weight._array.reshape(-1)
    counts, edges = np.histogram(x.reshape(-1), ends, range, density, weights)
    return Histogram(Tensor(counts.astype(x.dtype)), Tensor(edges.astype(x.dtype)))


@operation(function=True)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return the coordinates, in a tensor of ``shape``, of the elements with these numbers in row-major order.

    Raises:
        TypeError: not integers.
        ValueError: a number is out of range.
    """
    if indices.dtype.kind not in "iu":
        raise TypeError(f"unravel_index() takes integers, not {indices.dtype}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return tuple(Tensor(np.asarray(each, np.int64)) for each in np.unravel_index(indices._array, sizes))


@operation(function=True)
def searchsorted(
    sorted_sequence: Tensor,
    input: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return where each element of ``input`` would go in its sorted sequence: before equal ones, or behind if ``right``.

    Args:
        sorted_sequence: shape ``(n,)`` for all of ``input``, or ``(..., n)`` for its rows, of the same leading shape.
        sorter: the order of an unsorted sequence, as ``argsort`` gives it.
        input: values of any shape; with sequences of several dimensions, of as many rows.
        out_int32: whether the result is ``int32``.
        right: whether it goes behind equal elements.
        side: "left" or "right", instead of ``right``.
        out: where the result is written.

    Raises:
        ValueError: the shapes do not fit, or ``side`` contradicts ``right``.
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ValueError(f"searchsorted() takes side 'left' or 'right' that agrees with right, and you gave {side!r}")
    lines = sorted_sequence._array
    if sorter is not None:
        lines = np.take_along_axis(lines, sorter._array, -1)
    values = input._array if isinstance(input, Tensor) else np.asarray(input)
    dtype = result_type(lines, values)
    lines, values = lines.astype(dtype, copy=False), values.astype(dtype, copy=False)
    if lines.ndim != 1 and lines.shape[:-1] != values.shape[:-1]:
        raise ValueError(f"searchsorted() cannot look for shape {values.shape} in sequences of shape {lines.shape}")
    where: Any = "right" if right or side == "right" else "left"
    if lines.ndim == 1:
        places = np.asarray(np.searchsorted(lines, values, where))
    else:
        pairs = zip(lines.reshape(-1, lines.shape[-1]), values.reshape(-1, values.shape[-1]))
        found = [np.searchsorted(line, wanted, where) for line, wanted in pairs]
        places = np.asarray(found, np.int64).reshape(values.shape)
    return Tensor(places.astype(np.int32 if out_int32 else np.int64, copy=False))


@operation(function=True)
def bucketize(
    input: Operand,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the number of the interval between ``boundaries`` in which each element lies.

    Args:
        input: any shape.
        boundaries: a sorted vector.
        out_int32: whether the result is ``int32``.
        right: whether an interval has its left end.
        out: where the result is written.
    """
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@operation(function=True)
def isin(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return where an element is among ``test_elements``; with ``invert``, where it is not.

    Args:
        elements: a tensor or a number.
        test_elements: a tensor or a number.
        assume_unique: has no effect on the result.
        invert: whether to return the opposite.
    """
    dtype = result_type(elements, test_elements)
    among, test = (np.asarray(getattr(each, "_array", each)).astype(dtype) for each in (elements, test_elements))
    return Tensor(np.asarray(np.isin(among, test, assume_unique=assume_unique, invert=invert)))
