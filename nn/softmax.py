"""Softmax and its relatives, and gated units: layers that look along one dimension."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from typing import Any

from ..core.extend import Tensor
from . import functional as F
from .module import Module


class _AlongDim(Module):
    """A layer that works along ``dim``."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim: Any = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """``exp(input)`` divided by its sum along ``dim``."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """``Softmax`` of ``-input``."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.softmin(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of ``Softmax``."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """``Softmax`` over the channels of (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the input has another number of dimensions.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d needs an input of shape (N, C, H, W) or (C, H, W), not {input.shape}")
        return F.softmax(input, -3)


class GLU(_AlongDim):
    """The first half along ``dim`` times the sigmoid of the second half.

    Raises:
        ValueError: (of a call) that dimension has an odd length.
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape, with half its length along ``dim``."""
        return F.glu(input, self.dim)
