"""Pooling of one to three dimensions by the mean, or the norm, of each window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..operation import operation
from ..tensors import Tensor
from ..types import Array
from .elementwise.basic import abs as absolute
from .elementwise.basic import pow, relu, sign
from .shape.reshaping import squeeze
from .sliding import Ints, Sliding, per_dim
from .sliding_arguments import batched, pool_sliding
from .table.linear_map import LinearMap
from .windowing import share_windows, sum_windows

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d"]
METHODS = ()

_SUM = LinearMap("sum_pool", sum_windows, lambda g, shape, sliding: share_windows(g, sliding))


@operation
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """``avg_pool2d`` in one dimension: of (N, C, L) or (C, L)."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@operation
def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        kernel_size: the window's size; one number, or one for each dimension, as for those that follow.
        stride: how far the window moves; as far as it is large, if ``None``.
        padding: zeros on each side; at most half the window.
        ceil_mode: whether a last window that reaches beyond the padding counts too.
        count_include_pad: whether the sum is divided by the size of the window, and not by that of its part within.
        divisor_override: what the sum is divided by instead.

    Raises:
        ValueError: the shapes do not fit, the padding is more than half the window, or ``divisor_override`` is 0.
    """
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@operation
def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """``avg_pool2d`` in three dimensions: of (N, C, D, H, W) or (C, D, H, W)."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@operation
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """``lp_pool2d`` in one dimension: of (N, C, L) or (C, L)."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@operation
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of order ``norm_type`` of each window: ``sum(x ** norm_type) ** (1 / norm_type)``.

    Args and errors are as those of ``avg_pool2d``.
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@operation
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """``lp_pool2d`` in three dimensions: of (N, C, D, H, W) or (C, D, H, W)."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _avg_pool(
    dims: int,
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    if not input.is_floating_point():
        raise TypeError(f"means are floating-point numbers, and the input is {input.dtype}; convert it first")
    x = batched(input, dims)
    sliding = pool_sliding(x.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override is not None:
        if not divisor_override:
            raise ValueError("divisor_override must not be 0")
        result = _SUM(x, sliding) / divisor_override
    else:
        extra = per_dim("padding", padding, dims) if count_include_pad else (0,) * dims
        result = _SUM(x, sliding) / _sizes(sliding, extra, x._array)
    return result if x is input else squeeze(result, 0)


def _sizes(sliding: Sliding, extra: tuple[int, ...], x: Array) -> Any:
    """How many elements each window has that count: those in the image, and in ``extra`` padding on each side."""
    result = np.ones((), x.dtype)
    for length, stops, kernel, stride, before, more in zip(
        sliding.lengths, sliding.stops, sliding.kernel, sliding.stride, sliding.before, extra
    ):
        starts = np.arange(stops) * stride - before
        counts = np.minimum(starts + kernel, length + more) - np.maximum(starts, -more)
        result = np.multiply.outer(result, counts).astype(x.dtype)
    flat = result.reshape(-1)
    return float(flat[0]) if flat.size and (flat == flat[0]).all() else Tensor(result)


def _lp_pool(
    dims: int, input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None, ceil_mode: bool
) -> Tensor:
    sums = _avg_pool(dims, pow(input, norm_type), kernel_size, stride, 0, ceil_mode, True, 1)
    # PyTorch scales a mean to the whole window, so one that is cut off counts as if it went on alike.
    kernel = per_dim("kernel_size", kernel_size, dims)
    sizes = _avg_pool(
        dims, Tensor(np.ones((1, *input.shape[-dims:]), input.dtype)), kernel_size, stride, 0, ceil_mode, True, 1
    )
    sums = sums * Tensor(math.prod(kernel) / sizes._array)
    return pow(sign(sums) * relu(absolute(sums)), 1.0 / norm_type)
