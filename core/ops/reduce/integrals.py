"""Integrals and derivatives of sampled functions: the trapezoidal rule, and finite differences."""

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
    """Return the integral of a sampled function over ``dim`` by the trapezoidal rule.

    Args:
        y: values of the function.
        x: coordinates of the values: one-dimensional, or broadcast with ``y``; ``None`` for a distance of ``dx``.
        dx: distance between neighbours.
        dim: the dimension to integrate over.

    Raises:
        IndexError: there is no such dimension.
        TypeError: ``y`` or ``x`` holds booleans.
        ValueError: the shapes do not fit.
    """
    axis = one_dim(dim, y.ndim)
    if not y.shape[axis]:
        return total(y, axis, dtype=y.dtype)
    areas, width = _areas("trapezoid", y, x, dx, axis)
    return total(areas, axis) * width


@operation(function=True)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Scalar = 1, dim: int = -1) -> Tensor:
    """Return the integrals from the first value to each of the others by the trapezoidal rule; ``dim`` is one shorter.

    Args:
        y: values of the function.
        x: coordinates of the values: one-dimensional, or broadcast with ``y``; ``None`` for a distance of ``dx``.
        dx: distance between neighbours.
        dim: the dimension to integrate over.

    Raises:
        IndexError: there is no such dimension.
        TypeError: ``y`` or ``x`` holds booleans.
        ValueError: the shapes do not fit.
    """
    axis = one_dim(dim, y.ndim)
    areas, width = _areas("cumulative_trapezoid", y, x, dx, axis)
    return cumsum(areas, axis) * width


def _areas(name: str, y: Tensor, x: Tensor | None, dx: Scalar, axis: int) -> tuple[Tensor, float]:
    """Return areas of trapezoids, and the factor of all of them.

    As in PyTorch, sums and differences of integers have their dtype, and wrap around.
    """
    if y.dtype.kind == "b" or (x is not None and x.dtype.kind == "b"):
        raise TypeError(f"{name}() takes numbers, and you gave booleans; convert them, as with float()")
    first, second = _neighbours(y, axis)
    if x is None:
        return first + second, dx / 2
    if x.ndim == 1:
        if len(x) != y.shape[axis]:
            raise ValueError(f"trapezoid() needs a coordinate for each of {y.shape[axis]} values, and x has {len(x)}")
        x = x.reshape(-1, *(1,) * (y.ndim - axis - 1))
        left, right = _neighbours(x, 0)
    else:
        left, right = _neighbours(x, axis - y.ndim + x.ndim)
    return (first + second) * (right - left), 0.5


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
    """Return the derivatives of a sampled function in each of ``dim``, by differences that are of second order inside.

    Args:
        input: values of the function, at least ``edge_order + 1`` in each dimension.
        spacing: the distance between neighbours; or for each dimension a distance, or a vector of coordinates.
        dim: the dimensions; all if ``None``.
        edge_order: the order of the differences at both ends, 1 or 2.

    Returns:
        A tensor of the shape of ``input`` for each dimension.

    Raises:
        IndexError: there is no such dimension.
        ValueError: there are too few values, or ``spacing`` does not fit.
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
        raise ValueError(f"gradient() needs at least {edge_order + 1} values in dim {axis}, and there are {count}")
    gaps = _gaps(spacing, count, y, axis)
    rises = narrow(y, axis, 1, count - 1) - narrow(y, axis, 0, count - 1)
    slopes = rises / gaps
    gaps = gaps.reshape(*(1,) * (y.ndim - gaps.ndim), *gaps.shape)
    before, after = (narrow(gaps, axis, start, count - 2) for start in (0, 1))
    first, second = (narrow(slopes, axis, start, count - 2) for start in (0, 1))
    # The slope in the middle of the parabola through three points.
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
    """Return the distances between neighbours, in a shape that is broadcast with theirs."""
    if isinstance(spacing, (Tensor, Sequence)) and np.ndim(spacing):
        coordinates = as_tensor(spacing)
        if coordinates.shape != (count,):
            raise ValueError(
                f"gradient() needs {count} coordinates in dim {axis}, and you gave shape {coordinates.shape}"
            )
        gaps = narrow(coordinates, 0, 1, count - 1) - narrow(coordinates, 0, 0, count - 1)
    else:
        gaps = as_tensor(spacing, dtype=y.dtype if is_inexact(y.dtype) else None).expand(count - 1)
    return gaps.reshape(-1, *(1,) * (y.ndim - axis - 1))
