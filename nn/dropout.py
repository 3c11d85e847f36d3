"""Dropout layers: while training, they zero elements or whole channels by chance."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ..core.extend import Tensor
from . import functional as F
from .module import Module


class _Dropout(Module):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__} needs a probability between 0 and 1, and you gave {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Of the input's shape."""
        return type(self)._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """While training, zeroes each element with probability ``p`` and scales the others by ``1 / (1 - p)``.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """``Dropout`` of whole channels of (N, C, L) or (C, L)."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """``Dropout`` of whole channels of (N, C, H, W)."""

    _function = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """``Dropout`` of whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance of what ``SELU`` gives."""

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """``AlphaDropout`` of whole channels of (N, C, ...)."""

    _function = staticmethod(F.feature_alpha_dropout)
