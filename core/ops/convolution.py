"""Convolutions of one to three dimensions, their transposed forms, and ``im2col`` and ``col2im``.

A convolution is linear in the input and in the weight. So there are three operations, each the derivative of the others,
and gradients of every order are made of them.
"""

from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from .convolving import convolve, convolve_input, convolve_weight
from .operation import operation
from .shaping import reshape, squeeze, unsqueeze
from .sliding import Ints, Sliding, at_least, each, gathered, spread
from .table import Row, keep, record, records

__all__ = [
    "col2im",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "im2col",
]
METHODS = ()


def _of_bias(xp: Any, g: Any, *_: Any) -> Any:
    return xp.sum_dims(g, (0, *range(2, g.ndim)), False)


_CONVOLVE = Row(
    "convolution",
    lambda xp, g, x, weight, sliding, groups: xp.convolve_input(g, weight, sliding, groups),
    lambda xp, g, x, weight, sliding, groups: xp.convolve_weight(g, x, sliding, groups),
    _of_bias,
)
_INPUT = Row(
    "convolution_transpose",
    lambda xp, g, grad, weight, sliding, groups: xp.convolve(g, weight, sliding, groups),
    lambda xp, g, grad, weight, sliding, groups: xp.convolve_weight(grad, g, sliding, groups),
    _of_bias,
)
_WEIGHT = Row(
    "convolution_weight",
    lambda xp, g, grad, x, sliding, groups: xp.convolve(x, g, sliding, groups),
    lambda xp, g, grad, x, sliding, groups: xp.convolve_input(grad, g, sliding, groups),
)
_GATHER = Row("unfold", lambda xp, g, sliding: xp.spread(g, sliding))
_SPREAD = Row("fold", lambda xp, g, sliding: xp.gather_windows(g, sliding))


def convolved(x: Tensor, weight: Tensor, sliding: Sliding, groups: int, bias: Tensor | None = None) -> Tensor:
    """``convolve``, recorded."""
    result = convolve(x._array, weight._array, sliding, groups, None if bias is None else bias._array)
    return _finished(_CONVOLVE, result, x, weight, bias, sliding, groups)


def convolved_input(grad: Tensor, weight: Tensor, sliding: Sliding, groups: int, bias: Tensor | None = None) -> Tensor:
    """``convolve_input``, recorded."""
    result = convolve_input(grad._array, weight._array, sliding, groups)
    if bias is not None:
        result += bias._array.reshape(-1, *(1,) * (result.ndim - 2))
    return _finished(_INPUT, result, grad, weight, bias, sliding, groups)


def convolved_weight(grad: Tensor, x: Tensor, sliding: Sliding, groups: int) -> Tensor:
    """``convolve_weight``, recorded."""
    return _finished(_WEIGHT, convolve_weight(grad._array, x._array, sliding, groups), grad, x, None, sliding, groups)


def _finished(row: Row, out: Any, a: Tensor, b: Tensor, bias: Tensor | None, sliding: Sliding, groups: int) -> Tensor:
    result = Tensor(out)
    if records(a, b) or (bias is not None and records(bias)):
        # Each factor is what the other one's gradient needs.
        saved = (keep(a) if b._requires_grad else None, keep(b) if a._requires_grad else None)
        record(row, result, (a, b, bias)[: len(row.rules)], saved, sliding, groups)
    return result


def gathered_windows(x: Tensor, sliding: Sliding) -> Tensor:
    """What the window sees, (N, C, *kernel, *stops); recorded."""
    result = Tensor(gathered(x._array, sliding))
    return record(_GATHER, result, (x,), (), sliding) if records(x) else result


def spread_windows(seen: Tensor, sliding: Sliding) -> Tensor:
    """The transpose of ``gathered_windows``; recorded."""
    result = Tensor(spread(seen._array, sliding))
    return record(_SPREAD, result, (seen,), (), sliding) if records(seen) else result


@operation
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """``conv2d`` in one dimension: from (N, C, L) or (C, L), with a weight of shape (O, C // groups, K)."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


@operation
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of images with a weight, as convolutional layers compute it.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        weight: shape (O, C // groups, KH, KW).
        bias: shape (O,).
        stride: how far the window moves; one number, or one for each dimension, as for ``padding`` and ``dilation``.
        padding: zeros on each side; "valid" is none, "same" as many as keep the size (with stride 1).
        dilation: how far apart the pixels are that the window sees.
        groups: input and output channels are in as many groups; each sees its own only.

    Returns:
        Shape (N, O, H', W'), where H' = (H + 2 * padding - dilation * (KH - 1) - 1) // stride + 1.

    Raises:
        TypeError: not floating point, or of several dtypes.
        ValueError: the shapes do not fit, or the window is larger than the padded input.
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


@operation
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """``conv2d`` in three dimensions: from (N, C, D, H, W) or (C, D, H, W)."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


@operation
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """``conv_transpose2d`` in one dimension: from (N, C, L) or (C, L), with a weight of shape (C, O // groups, K)."""
    return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operation
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of ``conv2d``, which brings its result's shape back to its input's.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        weight: shape (C, O // groups, KH, KW).
        bias: shape (O,).
        stride, padding, groups, dilation: of the convolution that it transposes.
        output_padding: added to the size of the result, which several inputs of a strided convolution share.

    Returns:
        Shape (N, O, H', W'), where H' = (H - 1) * stride - 2 * padding + dilation * (KH - 1) + output_padding + 1.

    Raises:
        TypeError: not floating point, or of several dtypes.
        ValueError: the shapes do not fit, or ``output_padding`` is neither below ``stride`` nor below ``dilation``.
    """
    return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operation
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """``conv_transpose2d`` in three dimensions: from (N, C, D, H, W) or (C, D, H, W)."""
    return _conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operation
def im2col(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """The patches that a window sees, as columns: from (N, C, H, W) or (C, H, W) to (N, C * KH * KW, stops).

    Raises:
        ValueError: the window is larger than the padded input, or the input has another number of dimensions.
    """
    x = batched(input, 2)
    kernel, spaces = each("kernel_size", kernel_size, 2), each("padding", padding, 2)
    sliding = slide(x.shape[2:], kernel, each("stride", stride, 2), spaces, each("dilation", dilation, 2))
    windows = gathered_windows(x, sliding)
    columns = reshape(windows, (len(x), x.shape[1] * kernel[0] * kernel[1], math.prod(windows.shape[4:])))
    return columns if input.ndim == 4 else squeeze(columns, 0)


@operation
def col2im(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Add up patches, given as columns, to an image: the transpose of ``im2col``.

    Args:
        input: shape (N, C * KH * KW, stops) or without N.
        output_size: H and W.
        kernel_size, dilation, padding, stride: as those of ``im2col``.

    Raises:
        ValueError: the input has not as many rows or columns as the other arguments say.
    """
    kernel, spaces = each("kernel_size", kernel_size, 2), each("padding", padding, 2)
    lengths = each("output_size", output_size, 2)
    sliding = slide(lengths, kernel, each("stride", stride, 2), spaces, each("dilation", dilation, 2))
    stops, depth = sliding.stops[0] * sliding.stops[1], kernel[0] * kernel[1]
    if input.ndim not in (2, 3) or input.shape[-1] != stops or input.shape[-2] % depth:
        raise ValueError(f"the input must have shape (N, C * {depth}, {stops}), not {input.shape}")
    columns = input if input.ndim == 3 else unsqueeze(input, 0)
    seen = reshape(columns, (len(columns), columns.shape[1] // depth, *kernel, *sliding.stops))
    image = spread_windows(seen, sliding)
    return image if input.ndim == 3 else squeeze(image, 0)


def batched(input: Tensor, dims: int) -> Tensor:
    """``input`` with a batch dimension in front, if it had none.

    Raises:
        ValueError: it has not as many dimensions.
    """
    if input.ndim not in (dims + 1, dims + 2):
        lengths = ", ".join("DHW"[3 - dims :]) if dims > 1 else "L"
        raise ValueError(f"the input must have shape (N, C, {lengths}) or (C, {lengths}), not {input.shape}")
    return input if input.ndim == dims + 2 else unsqueeze(input, 0)


def slide(
    lengths: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    behind: tuple[int, ...] | None = None,
) -> Sliding:
    """How a window slides over an image with ``padding`` before it and behind it (``behind``: other than before).

    Raises:
        ValueError: a number is too small, or the window larger than the padded image.
    """
    at_least(1, kernel_size=kernel, stride=stride, dilation=dilation)
    at_least(0, padding=padding)
    spaces = [before + after for before, after in zip(padding, padding if behind is None else behind)]
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    room = [length + space for length, space in zip(lengths, spaces)]
    if any(span > free for span, free in zip(spans, room)):
        raise ValueError(f"the window spans {tuple(spans)} pixels, and the input with its padding has {tuple(room)}")
    stops = tuple((free - span) // step + 1 for free, span, step in zip(room, spans, stride))
    return Sliding(lengths, stops, kernel, stride, dilation, padding)


def _conv(
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: str | Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    x = batched(input, dims)
    _check(dims, x, weight, bias, groups, weight.shape[0])
    kernel, step, gap = weight.shape[2:], each("stride", stride, dims), each("dilation", dilation, dims)
    if isinstance(padding, str):
        before, behind = _named_padding(padding, kernel, step, gap)
        sliding = slide(x.shape[2:], kernel, step, before, gap, behind)
    else:
        sliding = slide(x.shape[2:], kernel, step, each("padding", padding, dims), gap)
    result = convolved(x, weight, sliding, groups, bias)
    return result if x is input else squeeze(result, 0)


def _conv_transpose(
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> Tensor:
    x = batched(input, dims)
    _check(dims, x, weight, bias, groups, weight.shape[1] * groups, transposed=True)
    kernel, step, gap = weight.shape[2:], each("stride", stride, dims), each("dilation", dilation, dims)
    before, extra = each("padding", padding, dims), each("output_padding", output_padding, dims)
    at_least(1, stride=step, dilation=gap)
    at_least(0, padding=before, output_padding=extra)
    if any(more >= max(s, d) for more, s, d in zip(extra, step, gap)):
        raise ValueError(f"output_padding {extra} must be less than the stride {step} or the dilation {gap}")
    lengths = tuple(
        (length - 1) * s - 2 * p + d * (k - 1) + more + 1
        for length, s, p, d, k, more in zip(x.shape[2:], step, before, gap, kernel, extra)
    )
    if min(lengths) < 1:
        raise ValueError(f"the result would have the lengths {lengths}; use less padding or a larger input")
    result = convolved_input(x, weight, Sliding(lengths, x.shape[2:], kernel, step, gap, before), groups, bias)
    return result if x is input else squeeze(result, 0)


def _named_padding(
    name: str, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if name == "valid":
        return (0,) * len(kernel), (0,) * len(kernel)
    if name != "same":
        raise ValueError(f'padding must be "same", "valid" or a number, and you gave {name!r}')
    if any(step != 1 for step in stride):
        raise ValueError(f'padding="same" needs stride 1, and you gave stride {stride}')
    total = [d * (k - 1) for d, k in zip(dilation, kernel)]
    return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)


def _check(
    dims: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    groups: int,
    outputs: int,
    transposed: bool = False,
) -> None:
    if weight.ndim != dims + 2:
        raise ValueError(f"the weight must have {dims + 2} dimensions, and it has shape {weight.shape}")
    if groups < 1 or weight.shape[0] % groups or x.shape[1] % groups:
        raise ValueError(f"groups={groups} must divide the channels of the input {x.shape} and weight {weight.shape}")
    wanted = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.shape[1] != wanted:
        raise ValueError(
            f"a weight of shape {weight.shape} with groups={groups} takes {wanted} channels, and the input of shape "
            f"{x.shape} has {x.shape[1]}"
        )
    if bias is not None and bias.shape != (outputs,):
        raise ValueError(f"the bias must have shape ({outputs},), one for each output channel, not {bias.shape}")
    dtypes = {tensor.dtype for tensor in (x, weight, bias) if tensor is not None}
    if len(dtypes) > 1 or not x.is_floating_point():
        raise TypeError(
            f"input, weight and bias must be of one floating-point dtype, and are {', '.join(map(str, sorted(dtypes)))}"
        )
