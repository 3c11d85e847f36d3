"""Integrals and slopes of sampled functions: the trapezoidal rule, and differences of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtypes import is_inexact
from ...tensors import Tensor
from ...types import Scalar
from ..create.from_data import as_tensor
from ..shape.joining import cat
from ..shape.splitting import narrow
from ..table.dims import all_dims, one_dim
from ..table.operation import operation
from .cumulative import cumsum
from .reductions import sum as total


@operation(function=True, synonyms=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """Return the integral along ``dim`` of a function that goes straight from value to value of ``y``.

    Args:
        y: the values.
        x: where they are: of one dimension, or broadcast with ``y``.
        dx: how far apart they are, without ``x``.
        dim: along which dimension.

    Raises:
        IndexError: there is no such dimension.
        ValueError: the shapes do not fit.
    """
    return total(_areas(y, x, dx, dim), one_dim(dim, y.ndim))


@operation(function=True)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """Return ``trapezoid`` up to each value but the first. Args and errors are those of ``trapezoid``.

    Args:
        y: values of the function.
        x: where they are; ``dx`` apart if ``None``.
        dx: distance of neighbours.
        dim: the dimension to integrate along.
    """
    return cumsum(_areas(y, x, dx, dim), one_dim(dim, y.ndim))


def _areas(y: Tensor, x: Tensor | None, dx: Scalar, dim: int) -> Tensor:
    axis = one_dim(dim, y.ndim)
    first, second = _neighbours(y, axis)
    if x is None:
        return (first + second) * (dx / 2)
    if x.ndim == 1:
        if len(x) != y.shape[axis]:
            raise ValueError(f"trapezoid() needs a place for each of {y.shape[axis]} values, and x has {len(x)}")
        x = x.reshape(-1, *(1,) * (y.ndim - axis - 1))
        left, right = _neighbours(x, 0)
    else:
        left, right = _neighbours(x, axis - y.ndim + x.ndim)
    return (first + second) * ((right - left) / 2)


def _neighbours(y: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    count = max(y.shape[axis] - 1, 0)
    return narrow(y, axis, 0, count), narrow(y, axis, min(1, y.shape[axis]), count)


@operation(function=True)
def gradient(
    input: Tensor,
    *,
    spacing: Any = 1,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Return the slopes of a sampled function along each of ``dim``, of second order inside.

    Args:
        input: the values, at least ``edge_order + 1`` along each dimension.
        spacing: how far apart they are; or for each dimension a number, or a vector of their places.
        dim: along which dimensions; all by default.
        edge_order: 1 or 2, the order at both ends.

    Returns:
        A tensor of the shape of ``input`` for each dimension.

    Raises:
        IndexError: there is no such dimension.
        ValueError: too few values, or spacings that do not fit.
    """
    dims = all_dims(dim, input.ndim)
    if edge_order not in (1, 2):
        raise ValueError(f"gradient() takes edge_order 1 or 2, and you gave {edge_order}")
    spacing = 1 if spacing is None else spacing
    single = isinstance(spacing, (int, float)) or (isinstance(spacing, Tensor) and not spacing.ndim)
    spacings = [spacing] * len(dims) if single else list(spacing)
    if len(spacings) != len(dims):
        raise ValueError(f"gradient() needs a spacing for each of {len(dims)} dimensions, and you gave {len(spacings)}")
    return tuple(_slope(input, axis, each, edge_order) for axis, each in zip(dims, spacings))


def _slope(y: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    count = y.shape[axis]
    if count < edge_order + 1:
        raise ValueError(f"gradient() needs at least {edge_order + 1} values along dim {axis}, and there are {count}")
    gaps = _gaps(spacing, count, y, axis)
    rises = narrow(y, axis, 1, count - 1) - narrow(y, axis, 0, count - 1)
    slopes = rises / gaps
    gaps = gaps.reshape(*(1,) * (y.ndim - gaps.ndim), *gaps.shape)
    before, after = (narrow(gaps, axis, start, count - 2) for start in (0, 1))
    first, second = (narrow(slopes, axis, start, count - 2) for start in (0, 1))
    # Through three places goes one parabola; this is its slope in the middle.
    inside = (first * after + second * before) / (before + after)
    low, high = narrow(slopes, axis, 0, 1), narrow(slopes, axis, count - 2, 1)
    if edge_order == 2:
        low = _end(low, narrow(slopes, axis, 1, 1), narrow(gaps, axis, 0, 1), narrow(gaps, axis, 1, 1))
        last = count - 2
        high = _end(
            high, narrow(slopes, axis, last - 1, 1), narrow(gaps, axis, last, 1), narrow(gaps, axis, last - 1, 1)
        )
    return cat([low, inside, high], axis)


def _end(near: Tensor, far: Tensor, near_gap: Tensor, far_gap: Tensor) -> Tensor:
    """Return the slope of the same parabola at its end."""
    return near + (near - far) * (near_gap / (near_gap + far_gap))


def _gaps(spacing: Any, count: int, y: Tensor, axis: int) -> Tensor:
    """Return how far apart neighbours are, in a shape that is broadcast with theirs."""
    if isinstance(spacing, (Tensor, Sequence)) and np.ndim(spacing):
        places = as_tensor(spacing)
        if places.shape != (count,):
            raise ValueError(f"gradient() needs {count} places along dim {axis}, and you gave shape {places.shape}")
        gaps = narrow(places, 0, 1, count - 1) - narrow(places, 0, 0, count - 1)
    else:
        gaps = as_tensor(spacing, dtype=y.dtype if is_inexact(y.dtype) else None).expand(count - 1)
    return gaps.reshape(-1, *(1,) * (y.ndim - axis - 1))
