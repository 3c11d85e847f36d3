"""Putting pooled elements back where they were."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..operation import operation
from ..tensors import Tensor
from .shape.reshaping import reshape
from .sliding import Ints, per_dim
from .sliding_arguments import batched
from .table.nodes import Row, record, records

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]
METHODS = ()

_UNPOOL = Row("max_unpool", lambda xp, g, where, shape: xp.reshape(xp.get(g, where), shape))


@operation
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """``max_unpool2d`` in one dimension: of (N, C, L) or (C, L)."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@operation
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put elements back where ``max_pool2d(return_indices=True)`` found them, into zeros.

    Args:
        input: shape (N, C, H', W') or (C, H', W').
        indices: of the same shape, into the flattened image.
        kernel_size, stride, padding: as those of ``max_pool2d``.
        output_size: the result's shape or last dimensions, of which several are pooled to one size.

    Raises:
        ValueError: the shapes differ, or an index is not within the image.
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@operation
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """``max_unpool2d`` in three dimensions: of (N, C, D, H, W) or (C, D, H, W)."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _max_unpool(
    dims: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    output_size: Sequence[int] | None,
) -> Tensor:
    if indices.shape != input.shape:
        raise ValueError(f"the indices must have the input's shape {input.shape}, not {indices.shape}")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"the indices must be integers, not {indices.dtype}")
    x = batched(input, dims)
    lengths = _unpooled(x.shape[2:], kernel_size, stride, padding, output_size)
    size, planes = math.prod(lengths), x.shape[0] * x.shape[1]
    places = indices._array.reshape(planes, -1 if indices.numel() else 0)
    if places.size and not (places.min() >= 0 and places.max() < size):
        raise ValueError(f"the indices must be from 0 to {size - 1}, within an image of {lengths}")
    where = (np.arange(planes)[:, None], places)
    out = np.zeros((planes, size), x.dtype)
    out[where] = x._array.reshape(places.shape)
    result = Tensor(out)
    if records(x):
        record(_UNPOOL, result, (x,), (), where, x.shape)
    return reshape(result, (*input.shape[:-dims], *lengths))


def _unpooled(
    pooled: tuple[int, ...], kernel_size: Ints, stride: Ints | None, padding: Ints, output_size: Sequence[int] | None
) -> tuple[int, ...]:
    dims = len(pooled)
    kernel, spaces = per_dim("kernel_size", kernel_size, dims), per_dim("padding", padding, dims)
    steps = kernel if stride is None else per_dim("stride", stride, dims)
    usual = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(pooled, steps, spaces, kernel))
    if output_size is None:
        return usual
    given = tuple(output_size)[-dims:]
    if len(given) != dims or any(not u - s < n < u + s for u, s, n in zip(usual, steps, given)):
        raise ValueError(
            f"output_size {tuple(output_size)} is not one that is pooled to {pooled}; the usual is {usual}"
        )
    return given
