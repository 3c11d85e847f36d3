"""Counting and searching: distinct elements, histograms, positions in sorted sequences. Not differentiable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

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
    """Return the distinct elements, sorted, shape ``(n,)``; with ``dim``, the distinct slices of that dimension.

    ``return_inverse`` and ``return_counts`` make it a tuple: the result, the indices in it (``int64``), the counts (``int64``).

    Args:
        input: any shape.
        sorted: has no effect: the result is always sorted.
        return_inverse: whether to return also the index of each element in the result.
        return_counts: whether to return also how often each element of the result occurs.
        dim: the dimension whose slices are compared; ``None`` to compare elements.

    Raises:
        TypeError: ``input`` is complex.
    """
    x = ordered("unique", input)
    axis = None if dim is None else one_dim(dim, x.ndim)
    values, inverse, counts = np.unique(
        x, return_inverse=True, return_counts=True, axis=axis, equal_nan=axis is not None
    )
    return _results(values, inverse.reshape(x.shape if axis is None else -1), counts, return_inverse, return_counts)


@operation(method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements without those equal to the element before, shape ``(n,)``; with ``dim``, slices of that dimension.

    ``return_inverse`` and ``return_counts`` make it a tuple: the result, the indices in it (``int64``), the counts (``int64``).

    Args:
        input: any shape.
        return_inverse: whether to return also the index of each element in the result.
        return_counts: whether to return also the number of equal elements that each replaces.
        dim: the dimension whose slices are compared; ``None`` to compare elements.
    """
    x = input._array
    axis = 0 if dim is None else one_dim(dim, x.ndim)
    slices = x.reshape(-1) if dim is None else x
    rows = np.moveaxis(slices, axis, 0)
    rows = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    starts = np.concatenate([np.ones(len(rows[:1]), bool), (rows[1:] != rows[:-1]).any(-1)])
    firsts = np.flatnonzero(starts)
    counts = np.diff(np.append(firsts, len(rows)))
    inverse = np.cumsum(starts) - 1
    return _results(
        np.take(slices, firsts, axis),
        inverse.reshape(x.shape) if dim is None else inverse,
        counts,
        return_inverse,
        return_counts,
    )


def _results(values: Array, inverse: Array, counts: Array, with_inverse: bool, with_counts: bool) -> Any:
    results = [Tensor(values)]
    if with_inverse:
        results.append(Tensor(inverse.astype(np.int64, copy=False)))
    if with_counts:
        results.append(Tensor(counts.astype(np.int64, copy=False)))
    return tuple(results) if len(results) > 1 else results[0]


@operation(method=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each of 0, 1, ... occurs in a vector of integers, ``int64``; with ``weights``, sums of weights.

    Args:
        input: a vector of integers of 0 or more.
        weights: the weight of each element, of the shape of ``input``.
        minlength: smallest length of the result.

    Raises:
        TypeError: ``input`` does not hold integers.
        ValueError: ``input`` is not a vector or holds a negative number, or ``weights`` has another shape.
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
    """Return the number of elements in each of ``bins`` bins of equal width, shape ``(bins,)``, in the dtype of ``input``.

    Args:
        input: any shape.
        bins: number of bins.
        min: lower end of the first bin; if it equals ``max``, the smallest element.
        max: upper end of the last bin; if it equals ``min``, the largest element.
        out: where the result is written.

    Raises:
        TypeError: ``input`` is complex.
        ValueError: ``bins`` is not positive, a bound is not finite, or ``min`` is above ``max``.
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
    indices = np.minimum(((inside - low) / (high - low) * bins).astype(np.int64), bins - 1)
    return Tensor(np.bincount(indices, minlength=bins).astype(x.dtype))


@operation(function=True)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return the coordinates of elements of a tensor of ``shape`` from their indices in row-major order.

    Returns:
        A tensor for each dimension of ``shape``, ``int64``, of the shape of ``indices``.

    Raises:
        TypeError: ``indices`` are not integers.
        ValueError: an index is out of range.
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
    """Return the index in a sorted sequence at which each element of ``input`` would be inserted, in the shape of ``input``.

    Args:
        sorted_sequence: shape ``(n,)``, or ``(..., n)`` with a sequence for each row of ``input``.
        sorter: the indices that sort ``sorted_sequence``, as ``argsort`` returns them.
        input: a number or a tensor: any shape, or ``(..., m)`` with a row for each sequence.
        out_int32: whether the result is ``int32``; ``int64`` if not.
        right: whether to insert after equal elements; before them if not.
        side: "left" or "right", in place of ``right``.
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
        indices = np.asarray(np.searchsorted(lines, values, where))
    else:
        rows = list(np.ndindex(lines.shape[:-1]))
        found = [np.searchsorted(lines[row], values[row], where) for row in rows]
        indices = np.asarray(found, np.int64).reshape(values.shape)
    return Tensor(indices.astype(np.int32 if out_int32 else np.int64, copy=False))


@operation(function=True)
def bucketize(
    input: Operand,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the index of the interval between ``boundaries`` that holds each element, in the shape of ``input``.

    Args:
        input: a number or a tensor of any shape.
        boundaries: a sorted vector.
        out_int32: whether the result is ``int32``; ``int64`` if not.
        right: whether intervals include their left end; their right end if not.
        out: where the result is written.

    Raises:
        ValueError: the shapes do not fit.
    """
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@operation(function=True)
def isin(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return whether each element is one of ``test_elements``, a boolean tensor of the shape of ``elements``.

    Args:
        elements: a tensor or a number.
        test_elements: a tensor or a number.
        assume_unique: has no effect on the result.
        invert: whether to negate the result.
    """
    dtype = result_type(elements, test_elements)
    among, test = (np.asarray(getattr(each, "_array", each)).astype(dtype) for each in (elements, test_elements))
    return Tensor(np.asarray(np.isin(among, test, assume_unique=assume_unique, invert=invert)))
