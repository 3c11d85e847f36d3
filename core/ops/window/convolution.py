"""Convolution of one to three dimensions, and transposed convolution.

The number ``sum(output * convolution(input, weight))`` is linear in all three tensors. Each operation here is its derivative
with respect to one, a function of the other two. So the gradients of each are the other two operations, to every order.
"""

from __future__ import annotations

from typing import Any

from ...tensors import Tensor
from ..index.indexing import part
from ..shape.reshaping import reshape, squeeze
from ..table.nodes import keep, record, records
from ..table.rows import ARRAYS, Row, Rule
from .arguments import at_least, batched, in_dims, per_dim, window_over
from .small_images import convolve, convolve_image, convolve_weight
from .window import Ints, Window

# The tensor with respect to which the derivative is taken. Its function takes the other two, in this order.
_OUTPUT, _INPUT, _WEIGHT = range(3)
_FUNCTIONS: tuple[Any, ...] = (convolve, convolve_image, convolve_weight)


def _derivative(wanted: int, first: Tensor, second: Tensor, window: Window, groups: int, *bias: Tensor) -> Tensor:
    result = Tensor(_FUNCTIONS[wanted](first._array, second._array, window, groups, *(each._array for each in bias)))
    if records(first, second, *bias):
        # The gradient of each factor needs the other one.
        saved = (keep(first) if second._requires_grad else None, keep(second) if first._requires_grad else None)
        record(_ROWS[wanted], result, (first, second, *bias), saved, window, groups)
    return result


def _rule(made: int, wanted: int) -> Rule:
    """Return the rule of the operation that makes one of the three for its input ``wanted``."""
    others = [each for each in range(3) if each != made]

    def rule(xp: Any, g: Any, first: Any, second: Any, window: Window, groups: int) -> Any:
        given = {made: g, others[0]: first, others[1]: second}
        one, two = (given[each] for each in range(3) if each != wanted)
        return (
            _FUNCTIONS[wanted](one, two, window, groups)
            if xp is ARRAYS
            else _derivative(wanted, one, two, window, groups)
        )

    return rule


def _bias_rule(xp: Any, g: Any, *_: Any) -> Any:
    return xp.sum_dims(g, (0, *range(2, g.ndim)), False)


_ROWS = (
    Row("convolution", _rule(_OUTPUT, _INPUT), _rule(_OUTPUT, _WEIGHT), _bias_rule),
    Row("convolution_transpose", _rule(_INPUT, _OUTPUT), _rule(_INPUT, _WEIGHT), _bias_rule),
    Row("convolution_weight", _rule(_WEIGHT, _OUTPUT), _rule(_WEIGHT, _INPUT)),
)


def _conv(
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of images with a weight, as convolutional layers compute it.

    ``output[n, o, i] = bias[o] + sum over c, k of weight[o, c, k] * input[n, c, i * stride - padding + k * dilation]``,
    with an i and k for each spatial dimension, and zeros outside the input.

    Args:
        input: shape (N, C, {image}) or (C, {image}), of any dtype but bool.
        weight: shape (O, C // groups, {kernel}), of the input's dtype.
        bias: shape (O,), of the input's dtype.
        stride: step from one stop of the window to the next; one number, or one for each dimension.
        padding: number of zeros on each side; one number, or one for each dimension; "valid" for none, "same" for an output
            of the input's size (with stride 1).
        dilation: step from one element of the window to the next; one number, or one for each dimension.
        groups: number of groups of channels; an output channel depends on the input channels of its group.

    Returns:
        Shape (N, O, {stops}) or (O, {stops}), where O is 0 for an input without channels, and each length is
        ``(length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1``.

    Raises:
        TypeError: the tensors are boolean, or their dtypes differ.
        ValueError: the shapes do not fit, or the window is larger than the padded input.
    """
    x = batched(input, dims)
    _check(dims, x, weight, bias, groups)
    behind = None
    if isinstance(padding, str):
        padding, behind = _named_padding(padding, weight.shape[2:], *_steps(dims, stride, dilation))
    window = window_over(x.shape[2:], weight.shape[2:], stride, padding, dilation, behind=behind)
    if not x.shape[1]:
        result = _without_channels(x, weight, bias, window.output_size)
    else:
        result = _derivative(_OUTPUT, x, weight, window, groups, *(() if bias is None else (bias,)))
    return result if x is input else squeeze(result, 0)


def _without_channels(x: Tensor, weight: Tensor, bias: Tensor | None, stops: tuple[int, ...]) -> Tensor:
    """Return what PyTorch does for an input without channels: a result without channels, of which the gradients are zeros."""
    nothing = reshape(x, (0,)) * reshape(weight, (0,))
    if bias is not None:
        nothing = nothing + part(bias, 0)
    return reshape(nothing, (x.shape[0], 0, *stops))


conv1d = in_dims(1, _conv)
conv2d = in_dims(2, _conv)
conv3d = in_dims(3, _conv)


def _conv_transpose(
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Return the transposed convolution: the gradient of a convolution with respect to its input.

    Args:
        input: shape (N, C, {image}) or (C, {image}), of any dtype but bool.
        weight: shape (C, O // groups, {kernel}), of the input's dtype.
        bias: shape (O,), of the input's dtype.
        stride, padding, groups, dilation: arguments of the convolution that is transposed.
        output_padding: added to the lengths of the result, because a strided convolution has one output size for more than
            one input size; one number, or one for each dimension.

    Returns:
        Shape (N, O, {stops}) or (O, {stops}), where each length is
        ``(length - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.

    Raises:
        TypeError: the tensors are boolean, or their dtypes differ.
        ValueError: the shapes do not fit, or ``output_padding`` is neither below ``stride`` nor below ``dilation``.
    """
    x = batched(input, dims)
    _check(dims, x, weight, bias, groups, transposed=True)
    kernel, (step, gap) = weight.shape[2:], _steps(dims, stride, dilation)
    before, extra = per_dim("padding", padding, dims), per_dim("output_padding", output_padding, dims)
    at_least(1, stride=step, dilation=gap)
    at_least(0, padding=before, output_padding=extra)
    if any(more >= max(s, d) for more, s, d in zip(extra, step, gap)):
        raise ValueError(f"output_padding {extra} must be less than the stride {step} or the dilation {gap}")
    size = tuple(
        (length - 1) * s - 2 * p + d * (k - 1) + more + 1
        for length, s, p, d, k, more in zip(x.shape[2:], step, before, gap, kernel, extra)
    )
    if min(size) < 1:
        raise ValueError(f"the result would have the lengths {size}; use less padding or a larger input")
    window = Window(size, x.shape[2:], kernel, step, gap, before)
    result = _derivative(_INPUT, x, weight, window, groups, *(() if bias is None else (bias,)))
    return result if x is input else squeeze(result, 0)


conv_transpose1d = in_dims(1, _conv_transpose)
conv_transpose2d = in_dims(2, _conv_transpose)
conv_transpose3d = in_dims(3, _conv_transpose)


def _steps(dims: int, stride: Ints, dilation: Ints) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return per_dim("stride", stride, dims), per_dim("dilation", dilation, dims)


def _named_padding(
    name: str, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and behind the image that "same" or "valid" stands for."""
    if name == "valid":
        return (0,) * len(kernel), (0,) * len(kernel)
    if name != "same":
        raise ValueError(f'padding must be "same", "valid" or a number, and you gave {name!r}')
    if any(step != 1 for step in stride):
        raise ValueError(f'padding="same" needs stride 1, and you gave stride {stride}')
    total = [d * (k - 1) for d, k in zip(dilation, kernel)]
    return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)


def _check(dims: int, x: Tensor, weight: Tensor, bias: Tensor | None, groups: int, *, transposed: bool = False) -> None:
    if weight.ndim != dims + 2:
        raise ValueError(f"the weight must have {dims + 2} dimensions, and it has shape {weight.shape}")
    if not weight.shape[0] or (transposed and not weight.shape[1]):
        raise ValueError(f"the weight must be of one channel or more, and it has shape {weight.shape}")
    if groups < 1 or weight.shape[0] % groups or x.shape[1] % groups:
        raise ValueError(f"groups={groups} must divide the channels of the input {x.shape} and weight {weight.shape}")
    outputs, inputs = weight.shape[0], weight.shape[1] * groups
    if transposed:
        outputs, inputs = weight.shape[1] * groups, weight.shape[0]
    if x.shape[1] != inputs:
        raise ValueError(
            f"a weight of shape {weight.shape} with groups={groups} takes {inputs} channels, and the input of shape "
            f"{x.shape} has {x.shape[1]}"
        )
    if bias is not None and bias.shape != (outputs,):
        raise ValueError(f"the bias must have shape ({outputs},), one for each output channel, not {bias.shape}")
    dtypes = {tensor.dtype for tensor in (x, weight, bias) if tensor is not None}
    if len(dtypes) > 1 or x.dtype.kind == "b":
        raise TypeError(
            f"input, weight and bias must be numbers of one dtype, and are {', '.join(sorted(map(str, dtypes)))}"
        )
