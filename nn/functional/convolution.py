"""Convolution, and patches as columns."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Sequence

from ... import core
from ...core import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from ...core.extend import Tensor

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fold",
    "unfold",
]

Ints = int | Sequence[int]


def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """The patches that a window sees, as columns: from (N, C, H, W) or (C, H, W) to (N, C * KH * KW, stops).

    Raises:
        ValueError: the window is larger than the padded input, or the input has another number of dimensions.
    """
    return core.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Add up patches, given as columns, to an image: the transpose of ``unfold``.

    Args:
        input: shape (N, C * KH * KW, stops) or without N.
        output_size: H and W.
        kernel_size, dilation, padding, stride: as those of ``unfold``.

    Raises:
        ValueError: the input has not as many rows or columns as the other arguments say.
    """
    return core.col2im(input, output_size, kernel_size, dilation, padding, stride)
