"""Patches of an image, and their sum as an image: ``im2col`` and ``col2im``, unfold and fold in PyTorch's layers."""

from __future__ import annotations

import math

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..shape.reshaping import reshape, squeeze, unsqueeze
from ..table.linear_map import LinearMap
from ..table.operation import operation
from .arguments import batched, per_dim, window_over
from .window import Ints, Window, overlap_add, padded, patches


def _unfold(x: Array, window: Window) -> Array:
    return np.ascontiguousarray(patches(padded(x, window), window))


def _fold(seen: Array, shape: tuple[int, ...], window: Window) -> Array:
    parts = seen.reshape((*shape[:2], math.prod(window.kernel_size), *window.output_size))
    return overlap_add(np.moveaxis(parts, 2, 0), shape, seen.dtype, window)


_UNFOLD = LinearMap("unfold", _unfold, _fold)
_FOLD = LinearMap("fold", _fold, lambda g, _, shape, window: _unfold(g, window))


@operation(function=True)
def im2col(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """Return the patches of an image that a window covers, as columns.

    Args:
        input: shape (N, C, H, W) or (C, H, W), of any dtype.
        kernel_size: size KH, KW of the window; one number, or one for each dimension.
        dilation: step from one element of the window to the next; one number, or one for each dimension.
        padding: number of zeros on each side of the image; one number, or one for each dimension.
        stride: step from one stop of the window to the next; one number, or one for each dimension.

    Returns:
        Shape (N, C * KH * KW, stops) or (C * KH * KW, stops), with the stops in row-major order.

    Raises:
        ValueError: the window is larger than the padded input, or the input has another number of dimensions.
    """
    x = batched(input, 2)
    window = window_over(x.shape[2:], kernel_size, stride, padding, dilation)
    depth, stops = math.prod(window.kernel_size), math.prod(window.output_size)
    columns = reshape(_UNFOLD(x, window), (len(x), x.shape[1] * depth, stops))
    return columns if input.ndim == 4 else squeeze(columns, 0)


@operation(function=True)
def col2im(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Return the image that is the sum of patches, given as columns: the adjoint of ``im2col``.

    Args:
        input: shape (N, C * KH * KW, stops) or (C * KH * KW, stops), of any dtype.
        output_size: lengths H, W of the image; one number, or one for each dimension.
        kernel_size, dilation, padding, stride: arguments of ``im2col``.

    Returns:
        Shape (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the shape of the input does not fit the other arguments.
    """
    window = window_over(per_dim("output_size", output_size, 2), kernel_size, stride, padding, dilation)
    depth, stops = math.prod(window.kernel_size), math.prod(window.output_size)
    if input.ndim not in (2, 3) or input.shape[-1] != stops or input.shape[-2] % depth:
        raise ValueError(f"the input must have shape (N, C * {depth}, {stops}), not {input.shape}")
    columns = input if input.ndim == 3 else unsqueeze(input, 0)
    batch = (len(columns), columns.shape[1] // depth)
    seen = reshape(columns, (*batch, *window.kernel_size, *window.output_size))
    image = _FOLD(seen, (*batch, *window.input_size), window)
    return image if input.ndim == 3 else squeeze(image, 0)
