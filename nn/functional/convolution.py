"""Convolution, and patches of images as columns."""

from __future__ import annotations

from ...core import col2im as fold
from ...core import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from ...core import im2col as unfold

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
