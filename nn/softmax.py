"""Layers of softmax and its relatives, and of gated linear units."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from typing import Any

from ..core.extend import Tensor
from . import functional as F
from .module import Module


class _AlongDim(Module):
    """Layer that works along ``dim``."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim: Any = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """``exp(input) / sum(exp(input))`` along a dimension.

    Args:
        dim: the dimension; leaving it out is deprecated.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """``Softmax`` of ``-input``.

    Args:
        dim: the dimension; leaving it out is deprecated.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.softmin(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """Logarithm of ``Softmax``, precise where that is tiny.

    Args:
        dim: the dimension; leaving it out is deprecated.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """``Softmax`` over the channels of (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the input has another number of dimensions.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d needs an input of shape (N, C, H, W) or (C, H, W), not {input.shape}")
        return F.softmax(input, -3)


class GLU(_AlongDim):
    """``first * sigmoid(second)`` of the two halves of the input along a dimension (Dauphin et al. 2017).

    Args:
        dim: dimension that is halved.

    Raises:
        ValueError: (of a call) that dimension has an odd length.
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape with half the length along ``dim``."""
        return F.glu(input, self.dim)
