"""Pooling of one to three dimensions: the largest element, the mean or the norm of each window."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from ..tensor import Tensor
from ..types import Array
from .convolution import batched
from .elementwise import abs as absolute
from .elementwise import pow, relu, sign
from .operation import operation
from .shaping import squeeze
from .sliding import Ints, Sliding, at_least, each
from .table import Row, record, records
from .windowing import peak_places, peaks, pick, pixel_numbers, place_back, share_windows, sum_windows

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]
METHODS = ()

_PICK = Row("max_pool", lambda xp, g, chosen, sliding: xp.place_back(g, chosen, sliding))
_PLACE = Row("max_pool_place", lambda xp, g, chosen, sliding: xp.pick_windows(g, chosen, sliding))
_SUM = Row("sum_pool", lambda xp, g, sliding: xp.share_windows(g, sliding))
_SHARE = Row("sum_pool_share", lambda xp, g, sliding: xp.sum_windows(g, sliding))


def pick_windows(x: Tensor, chosen: Array, sliding: Sliding) -> Tensor:
    """``pick``, recorded."""
    result = Tensor(pick(x._array, chosen, sliding))
    return record(_PICK, result, (x,), (), chosen, sliding) if records(x) else result


def placed_back(grad: Tensor, chosen: Array, sliding: Sliding) -> Tensor:
    """``place_back``, recorded."""
    result = Tensor(place_back(grad._array, chosen, sliding))
    return record(_PLACE, result, (grad,), (), chosen, sliding) if records(grad) else result


def summed_windows(x: Tensor, sliding: Sliding) -> Tensor:
    """``sum_windows``, recorded."""
    result = Tensor(sum_windows(x._array, sliding))
    return record(_SUM, result, (x,), (), sliding) if records(x) else result


def shared_windows(grad: Tensor, sliding: Sliding) -> Tensor:
    """``share_windows``, recorded."""
    result = Tensor(share_windows(grad._array, sliding))
    return record(_SHARE, result, (grad,), (), sliding) if records(grad) else result


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@operation
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """``max_pool2d`` in one dimension: of (N, C, L) or (C, L)."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@operation
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        kernel_size: the window's size; one number, or one for each dimension, as for those that follow.
        stride: how far the window moves; as far as it is large, if ``None``.
        padding: how many elements on each side count as -inf; at most half the window.
        dilation: how far apart the elements are that the window sees.
        ceil_mode: whether a last window that reaches beyond the padding counts too.
        return_indices: return where the elements were in the flattened image (H * W) too.

    Returns:
        Shape (N, C, H', W'), where H' = (H + 2 * padding - dilation * (KH - 1) - 1) / stride + 1, rounded down or up.
        Of several largest elements, the first one gets the gradient.

    Raises:
        ValueError: the shapes do not fit, or the padding is more than half the window.
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@operation
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """``max_pool2d`` in three dimensions: of (N, C, D, H, W) or (C, D, H, W)."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


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


def _max_pool(
    dims: int,
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    x = batched(input, dims)
    sliding = pool_sliding(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    top = peaks(x._array, sliding)
    result = Tensor(top)
    chosen = peak_places(x._array, top, sliding) if return_indices or records(x) else None
    if records(x):
        record(_PICK, result, (x,), (), chosen, sliding)
    result = result if x is input else squeeze(result, 0)
    if chosen is None or not return_indices:
        return result
    return result, Tensor(pixel_numbers(chosen, sliding).reshape(result.shape))


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
        result = summed_windows(x, sliding) / divisor_override
    else:
        extra = each("padding", padding, dims) if count_include_pad else (0,) * dims
        result = summed_windows(x, sliding) / _sizes(sliding, extra, x._array)
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
    kernel = each("kernel_size", kernel_size, dims)
    sizes = _avg_pool(
        dims, Tensor(np.ones((1, *input.shape[-dims:]), input.dtype)), kernel_size, stride, 0, ceil_mode, True, 1
    )
    sums = sums * Tensor(math.prod(kernel) / sizes._array)
    return pow(sign(sums) * relu(absolute(sums)), 1.0 / norm_type)


def pool_sliding(
    lengths: tuple[int, ...], kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Sliding:
    """How a pooling window slides.

    Raises:
        ValueError: the window is larger than the padded input, or the padding more than half the window.
    """
    dims = len(lengths)
    kernel, gap = each("kernel_size", kernel_size, dims), each("dilation", dilation, dims)
    steps = kernel if stride is None or stride == [] else each("stride", stride, dims)
    before = each("padding", padding, dims)
    at_least(1, kernel_size=kernel, stride=steps, dilation=gap)
    at_least(0, padding=before)
    if any(2 * space > k for space, k in zip(before, kernel)):
        raise ValueError(f"padding {before} must be at most half of kernel_size {kernel}")
    stops = tuple(map(_stops, lengths, kernel, steps, before, gap, (ceil_mode,) * dims))
    if min(stops) < 1:
        spans = tuple(d * (k - 1) + 1 for d, k in zip(gap, kernel))
        raise ValueError(f"the window spans {spans} elements, and the input has {lengths}, with padding {before}")
    return Sliding(lengths, stops, kernel, steps, gap, before)


def _stops(length: int, kernel: int, stride: int, before: int, dilation: int, ceil_mode: bool) -> int:
    free = length + 2 * before - dilation * (kernel - 1) - 1
    if free < 0 and not ceil_mode:
        return 0
    stops = -(-free // stride) + 1 if ceil_mode else free // stride + 1
    # A last window must begin within the image or the padding before it.
    return stops - 1 if ceil_mode and (stops - 1) * stride >= length + before else stops
