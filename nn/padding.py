"""Layers that add elements around their input: a constant, its mirror image, its edge, or its other end."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..core.extend import Tensor
from . import functional as F
from .module import Module

Ints = int | Sequence[int]


class _Pad(Module):
    """Layer that pads the last dimensions."""

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
        """Return the input with its padding."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with its padding."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Padding of (N, C, L) or (C, L) with a constant.

    Args:
        padding, value: as for ``ConstantPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """Padding of (N, C, H, W) or (C, H, W) with a constant.

    Args:
        padding: number of elements on all sides, or one for each: left, right, top, bottom. Negative numbers remove
            elements.
        value: the constant.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """Padding of (N, C, D, H, W) or (C, D, H, W) with a constant.

    Args:
        padding, value: as for ``ConstantPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad1d(_ZeroPad):
    """Padding of (N, C, L) or (C, L) with zeros.

    Args:
        padding: as for ``ZeroPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 1


class ZeroPad2d(_ZeroPad):
    """Padding of (N, C, H, W) or (C, H, W) with zeros.

    Args:
        padding: number of elements on all sides, or one for each: left, right, top, bottom. Negative numbers remove
            elements.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 2


class ZeroPad3d(_ZeroPad):
    """Padding of (N, C, D, H, W) or (C, D, H, W) with zeros.

    Args:
        padding: as for ``ZeroPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 3


class ReflectionPad1d(_Pad):
    """Padding of (N, C, L) or (C, L) with its mirror image; the edge is not repeated.

    Args:
        padding: as for ``ReflectionPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 1
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """Padding of (N, C, H, W) or (C, H, W) with its mirror image; the edge is not repeated.

    Args:
        padding: number of elements on all sides, or one for each: left, right, top, bottom. Negative numbers remove
            elements.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """Padding of (N, C, D, H, W) or (C, D, H, W) with its mirror image; the edge is not repeated.

    Args:
        padding: as for ``ReflectionPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """Padding of (N, C, L) or (C, L) with its edge.

    Args:
        padding: as for ``ReplicationPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 1
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """Padding of (N, C, H, W) or (C, H, W) with its edge.

    Args:
        padding: number of elements on all sides, or one for each: left, right, top, bottom. Negative numbers remove
            elements.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """Padding of (N, C, D, H, W) or (C, D, H, W) with its edge.

    Args:
        padding: as for ``ReplicationPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 3
    _mode = "replicate"


class CircularPad1d(_Pad):
    """Padding of (N, C, L) or (C, L) with its other end.

    Args:
        padding: as for ``CircularPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 1
    _mode = "circular"


class CircularPad2d(_Pad):
    """Padding of (N, C, H, W) or (C, H, W) with its other end.

    Args:
        padding: number of elements on all sides, or one for each: left, right, top, bottom. Negative numbers remove
            elements.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 2
    _mode = "circular"


class CircularPad3d(_Pad):
    """Padding of (N, C, D, H, W) or (C, D, H, W) with its other end.

    Args:
        padding: as for ``CircularPad2d``.

    Raises:
        ValueError: ``padding`` has another number of lengths.
    """

    _dims = 3
    _mode = "circular"
