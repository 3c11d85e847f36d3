"""Transposed convolutions of one to three dimensions: what a convolution's gradient does to its input."""

from __future__ import annotations

from ..operation import operation
from ..tensors import Tensor
from .convolution import check_convolution, convolved_input
from .shape.reshaping import squeeze
from .sliding import Ints, Sliding, at_least, per_dim
from .sliding_arguments import batched

__all__ = ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]
METHODS = ()


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
    check_convolution(dims, x, weight, bias, groups, weight.shape[1] * groups, transposed=True)
    kernel, step, gap = weight.shape[2:], per_dim("stride", stride, dims), per_dim("dilation", dilation, dims)
    before, extra = per_dim("padding", padding, dims), per_dim("output_padding", output_padding, dims)
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
