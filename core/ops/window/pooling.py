"""Pooling of one to three dimensions by the mean or the norm of each window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...dtypes import int64, wide_type
from ...tensors import Tensor
from ...types import Array, DType
from ..elementwise.conversion import to
from ..elementwise.operators import abs as absolute
from ..elementwise.operators import div, pow, relu, sign
from ..table.linear_map import LinearMap
from ..table.operation import operation
from .arguments import batched, in_dims, per_dim, pool_window, unbatched
from .window import Ints, Window, reduce_window, spread


def _sum(x: Array, window: Window) -> Array:
    return reduce_window(np.add, x, window)


def _share(g: Array, shape: tuple[int, ...], window: Window) -> Array:
    return spread(g, window)


_SUM = LinearMap("sum_pool", _sum, _share)


@operation(function=True)
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window.

    Args:
        input: shape (N, C, L) or (C, L), floating-point or int64, whose means are cut towards zero.
        kernel_size: size of the window.
        stride: step from one stop of the window to the next; ``kernel_size`` if ``None``.
        padding: number of zeros on each side, at most half the window.
        ceil_mode: whether to add a last stop that begins within the image and reaches beyond the padding.
        count_include_pad: whether the sum is divided by the number of elements with those of the padding, or without.

    Returns:
        Shape (N, C, L') or (C, L') with ``L' = (L + 2 * padding - kernel_size) / stride + 1``, rounded down, or up in
        ``ceil_mode``.

    Raises:
        TypeError: the input is of another dtype.
        ValueError: the shapes do not fit, or the padding is more than half the window.
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _avg_pool(
    dims: int,
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window.

    Args:
        input: shape (N, C, {image}) or (C, {image}), floating-point or int64, whose means are cut towards zero.
        kernel_size: size of the window; one number, or one for each dimension.
        stride: step from one stop of the window to the next; one number, or one for each dimension; ``kernel_size`` if
            ``None``.
        padding: number of zeros on each side, at most half the window; one number, or one for each dimension.
        ceil_mode: whether to add a last stop that begins within the image and reaches beyond the padding.
        count_include_pad: whether the sum is divided by the number of elements with those of the padding, or without.
        divisor_override: divisor of the sum instead.

    Returns:
        Shape (N, C, {stops}) or (C, {stops}), where each length is ``(length + 2 * padding - kernel_size) / stride + 1``,
        rounded down, or up in ``ceil_mode``.

    Raises:
        TypeError: the input is of another dtype.
        ValueError: the shapes do not fit, the padding is more than half the window, or ``divisor_override`` is 0.
    """
    if input.dtype != int64:
        check_floating(input)
    given, input = input, to(input, wide_type(input.dtype))
    sums, window = _window_sums(dims, input, kernel_size, stride, padding, ceil_mode)
    if divisor_override == 0:
        raise ValueError("divisor_override must not be 0")
    divisor: Any = divisor_override
    if divisor is None:
        counted = per_dim("padding", padding, dims) if count_include_pad else (0,) * dims
        divisor = _counts(window, counted, sums.dtype)
    means = div(sums, divisor, rounding_mode="trunc" if input.dtype == int64 else None)
    return to(unbatched(means, input), given.dtype)


avg_pool2d = in_dims(2, _avg_pool)
avg_pool3d = in_dims(3, _avg_pool)


def check_floating(input: Tensor) -> None:
    """Raise unless the input is floating-point, as its means are.

    Raises:
        TypeError: the input is not floating-point.
    """
    if not input.is_floating_point():
        raise TypeError(f"means are floating-point numbers, and the input is {input.dtype}; convert it first")


def _window_sums(
    dims: int, input: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool
) -> tuple[Tensor, Window]:
    x = batched(input, dims)
    window = pool_window(x.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
    return _SUM(x, window), window


def _counts(window: Window, padding: tuple[int, ...], dtype: DType) -> Any:
    """Return the number of elements in each window that belong to the image or to its ``padding`` on each side."""
    result = np.ones((), dtype)
    for length, stops, kernel, stride, _, before, more in zip(*window, padding):
        starts = np.arange(stops) * stride - before
        counts = np.minimum(starts + kernel, length + more) - np.maximum(starts, -more)
        result = np.multiply.outer(result, counts).astype(dtype)
    flat = result.reshape(-1)
    return flat[0].item() if flat.size and (flat == flat[0]).all() else Tensor(result)


def _lp_pool(
    dims: int, input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """Return the norm of each window: ``sum(x ** norm_type) ** (1 / norm_type)``.

    As in PyTorch, the sum of a window that reaches beyond the input is scaled to that of a whole window.

    Args:
        input: shape (N, C, {image}) or (C, {image}), floating-point.
        norm_type: order of the norm, not 0.
        kernel_size: size of the window; one number, or one for each dimension.
        stride: step from one stop of the window to the next; one number, or one for each dimension; ``kernel_size`` if
            ``None``.
        ceil_mode: whether to add a last stop that begins within the input and reaches beyond it.

    Returns:
        Shape (N, C, {stops}) or (C, {stops}), where each length is ``(length - kernel_size) / stride + 1``, rounded down,
        or up in ``ceil_mode``.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: the shapes do not fit.
    """
    check_floating(input)
    given, input = input, to(input, wide_type(input.dtype))
    sums, window = _window_sums(dims, pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    sums = sums * (math.prod(window.kernel_size) / _counts(window, (0,) * dims, sums.dtype))
    return to(unbatched(pow(sign(sums) * relu(absolute(sums)), 1.0 / norm_type), input), given.dtype)


lp_pool1d = in_dims(1, _lp_pool)
lp_pool2d = in_dims(2, _lp_pool)
lp_pool3d = in_dims(3, _lp_pool)
