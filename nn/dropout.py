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
        """Return a tensor of the input's shape."""
        return type(self)._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Dropout of elements: while training, random ones are zeroed and the others divided by ``1 - p``.

    Args:
        p: probability with which each element is zeroed while training.
        inplace: whether to write into the input.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """Dropout of whole channels of (N, C, L) or (C, L).

    Args:
        p: probability with which each channel is zeroed while training.
        inplace: whether to write into the input.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """

    _function = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """Dropout of whole channels of (N, C, H, W).

    Args:
        p: probability with which each channel is zeroed while training.
        inplace: whether to write into the input.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """

    _function = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    Args:
        p: probability with which each channel is zeroed while training.
        inplace: whether to write into the input.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1 of the results of ``SELU``; see ``functional.alpha_dropout``.

    Args:
        p: probability with which each element is set to the lower limit of ``SELU`` while training.
        inplace: whether to write into the input.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """``AlphaDropout`` of whole channels of (N, C, ...).

    Args:
        p: probability with which each channel is set to the lower limit of ``SELU`` while training.
        inplace: whether to write into the input.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """

    _function = staticmethod(F.feature_alpha_dropout)
