"""Histograms of numbers and of points. Not differentiable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...tensors import Tensor
from ...types import Array, DType
from ..table.operation import operation
from .extremes import ordered


class Histogram(NamedTuple):
    """Result of ``histogram``: the counts and the ends of the bins."""

    hist: Tensor
    bin_edges: Tensor


class HistogramDD(NamedTuple):
    """Result of ``histogramdd``.

    Attributes:
        hist: number or weight of the points in each box.
        bin_edges: the ends of the bins of each dimension.
    """

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


@operation(method=True)
def histogram(
    input: Tensor,
    bins: int | Tensor,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Return the number of elements in each bin, and the ends of the bins.

    Args:
        input: any shape, floating-point.
        bins: number of bins of equal width, or a sorted vector of their ends.
        range: the ends of the first and the last bin; by default the smallest and the largest element.
        weight: the weight of each element; 1 if ``None``.
        density: whether to divide by the sum and the widths, so that the integral is 1.

    Raises:
        TypeError: ``input`` is not floating-point.
        ValueError: there are no bins, their ends are not sorted, or ``weight`` has another shape.
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
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> HistogramDD:
    """Return the number of points in each box of a grid, and the ends of its bins.

    Args:
        input: points, shape (..., D), floating-point.
        bins: number of bins of equal width, for all dimensions or for each; or for each a sorted vector of their ends.
        range: the ends of the first and the last bin of each dimension, 2 * D numbers; by default those of the points.
        weight: the weight of each point, shape (...); 1 if ``None``.
        density: whether to divide by the sum and the boxes' sizes, so that the integral is 1.

    Returns:
        ``hist``, with a dimension for each of the points', and ``bin_edges``, a tuple of vectors.

    Raises:
        TypeError: ``input`` is not floating-point.
        ValueError: there are no bins, or an argument does not fit the shape of ``input``.
    """
    x = ordered("histogramdd", input)
    if x.dtype.kind != "f":
        raise TypeError(f"histogramdd() takes floating-point numbers, not {input.dtype}")
    if x.ndim < 2:
        raise ValueError(f"histogramdd() takes points, shape (..., D), and you gave shape {input.shape}")
    count = x.shape[-1]
    if weight is not None and weight.shape != input.shape[:-1]:
        raise ValueError(f"histogramdd() needs weights of shape {input.shape[:-1]}, and you gave {weight.shape}")
    if (not isinstance(bins, int) and len(bins) != count) or (range is not None and len(range) != 2 * count):
        raise ValueError(f"points of {count} dimensions need as many bins, and a range of {2 * count} numbers")
    points = x.reshape(math.prod(x.shape[:-1]), count)
    limits = list(zip(range[::2], range[1::2])) if range is not None else _limits(points)
    given = (bins,) * count if isinstance(bins, int) else bins
    ends = [_ends(own, limit, x.dtype) for own, limit in zip(given, limits)]
    weights = np.ones(len(points), x.dtype) if weight is None else weight._array.reshape(-1)
    counts = _counted(points, ends, weights)
    if density:
        counts /= counts.sum()
        for axis, own in enumerate(ends):
            counts /= np.diff(own).reshape(-1, *(1,) * (count - axis - 1))
    return HistogramDD(Tensor(counts.astype(x.dtype)), tuple(map(Tensor, ends)))


def _limits(points: Array) -> list[tuple[float, float]]:
    """Return the smallest and the largest number of each column, apart from one another."""
    if not len(points):
        return [(0.0, 1.0)] * points.shape[1]
    pairs = zip(points.min(0).tolist(), points.max(0).tolist())
    return [(low - 0.5, high + 0.5) if low == high else (low, high) for low, high in pairs]


def _ends(bins: int | Tensor, limit: tuple[float, float], dtype: DType) -> Array:
    if isinstance(bins, Tensor):
        return bins._array.astype(dtype)
    if bins < 1:
        raise ValueError(f"histogramdd() needs at least one bin in each dimension, and you gave {bins}")
    return np.linspace(*limit, bins + 1, dtype=dtype)


def _counted(points: Array, ends: Sequence[Array], weights: Array) -> Array:
    """Return the weights of the points in each box; the last bin has both of its ends."""
    shape = tuple(len(own) - 1 for own in ends)
    inside = np.ones(len(points), np.bool_)
    place = np.zeros(len(points), np.int64)
    for column, own, size in zip(points.T, ends, shape):
        inside &= (column >= own[0]) & (column <= own[-1])
        place = place * size + np.minimum(_upper_bound(own, column) - 1, size - 1)
    counts = np.bincount(place[inside], weights[inside], math.prod(shape))
    return counts.reshape(shape).astype(np.float64, copy=False)  # of no points, bincount() returns integers


def _upper_bound(ends: Array, values: Array) -> Array:
    """Return the place of the first end above each value. Of ends that are not sorted, the one that bisection finds."""
    low, left = np.zeros(len(values), np.int64), np.full(len(values), len(ends))
    while left.any():
        half = left >> 1
        middle = np.minimum(low + half, len(ends) - 1)
        above = (values < ends[middle]) | (left == 0)
        low = np.where(above, low, middle + 1)
        left = np.where(above, half, left - half - 1)
    return low
