"""Convolutions of one to three dimensions.

A convolution is linear in the input and in the weight. So there are three operations, each the derivative of the others,
and gradients of every order are made of them.
"""

from __future__ import annotations

from typing import Any

from ..operation import operation
from ..tensors import Tensor
from .convolving import convolve, convolve_input, convolve_weight
from .shape.reshaping import squeeze
from .sliding import Ints, Sliding, per_dim
from .sliding_arguments import batched, slide
from .table.nodes import Row, keep, record, records

__all__ = ["conv1d", "conv2d", "conv3d"]
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
    check_convolution(dims, x, weight, bias, groups, weight.shape[0])
    kernel, step, gap = weight.shape[2:], per_dim("stride", stride, dims), per_dim("dilation", dilation, dims)
    if isinstance(padding, str):
        before, behind = _named_padding(padding, kernel, step, gap)
        sliding = slide(x.shape[2:], kernel, step, before, gap, behind)
    else:
        sliding = slide(x.shape[2:], kernel, step, per_dim("padding", padding, dims), gap)
    result = convolved(x, weight, sliding, groups, bias)
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


def check_convolution(
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
