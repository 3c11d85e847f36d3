"""Layers that put something around their input: a constant, its mirror image, its edge, or its other end.

All take ``padding`` as ``ConstantPad2d`` does.
"""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..core.extend import Tensor
from . import functional as F
from .module import Module

Ints = int | Sequence[int]


class _Pad(Module):
    """Pads the last dimensions by ``padding``: one number, or those before and after, from the last dimension on."""

    _dims: ClassVar[int]
    _mode: ClassVar[str] = "constant"

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._dims) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self._dims:
            raise ValueError(
                f"{type(self).__name__}: padding must be an integer or {2 * self._dims} of them, and you gave {padding}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """The input with its padding."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The input with its padding."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Puts ``value`` around (N, C, L) or (C, L)."""

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """Puts ``value`` around (N, C, H, W) or (C, H, W).

    Args:
        padding: how much on all sides; or a number for each: left, right, above, below. Negative ones cut off.
        value: what.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """Puts ``value`` around (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad1d(_ZeroPad):
    """Puts zeros around (N, C, L) or (C, L)."""

    _dims = 1


class ZeroPad2d(_ZeroPad):
    """``ConstantPad2d`` of zeros: around (N, C, H, W) or (C, H, W)."""

    _dims = 2


class ZeroPad3d(_ZeroPad):
    """Puts zeros around (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3


class ReflectionPad1d(_Pad):
    """Puts the mirror image of (N, C, L) or (C, L) around it; the edge is not repeated."""

    _dims = 1
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """Puts the mirror image of (N, C, H, W) or (C, H, W) around it; the edge is not repeated."""

    _dims = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """Puts the mirror image of (N, C, D, H, W) or (C, D, H, W) around it; the edge is not repeated."""

    _dims = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """Repeats the edge of (N, C, L) or (C, L) around it."""

    _dims = 1
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """Repeats the edge of (N, C, H, W) or (C, H, W) around it."""

    _dims = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """Repeats the edge of (N, C, D, H, W) or (C, D, H, W) around it."""

    _dims = 3
    _mode = "replicate"


class CircularPad1d(_Pad):
    """Puts the other end of (N, C, L) or (C, L) on each side."""

    _dims = 1
    _mode = "circular"


class CircularPad2d(_Pad):
    """Puts the other end of (N, C, H, W) or (C, H, W) on each side."""

    _dims = 2
    _mode = "circular"


class CircularPad3d(_Pad):
    """Puts the other end of (N, C, D, H, W) or (C, D, H, W) on each side."""

    _dims = 3
    _mode = "circular"
