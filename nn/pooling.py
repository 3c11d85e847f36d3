"""Layers of pooling, of one to three dimensions; ``functional`` has the functions."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..core.extend import Tensor
from . import functional as F
from .module import Module

Ints = int | Sequence[int]
Sizes = int | None | Sequence[int | None]


class _MaxPool(Module):
    _function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Return the largest elements, and with ``return_indices`` their indices in the flattened image."""
        return type(self)._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Largest element of each window of (N, C, L) or (C, L).

    Args:
        kernel_size, stride, padding, dilation, return_indices, ceil_mode: as for ``MaxPool2d``.

    Raises:
        ValueError: (of a call) as for ``MaxPool2d``.
    """

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """Largest element of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: size of the window; one number, or one for each dimension, as for those that follow.
        stride: step from one stop of the window to the next; ``kernel_size`` if ``None``.
        padding: number of elements on each side that count as -inf; at most half the window.
        dilation: step from one element of the window to the next.
        return_indices: whether calls also return the indices of the elements, as ``MaxUnpool2d`` takes them.
        ceil_mode: whether a last window that reaches beyond the padding counts too.

    Raises:
        ValueError: (of a call) the shapes do not fit, or the padding is more than half the window.
    """

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """Largest element of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        kernel_size, stride, padding, dilation, return_indices, ceil_mode: as for ``MaxPool2d``.

    Raises:
        ValueError: (of a call) as for ``MaxPool2d``.
    """

    _function = staticmethod(F.max_pool3d)


class AvgPool1d(Module):
    """Mean of each window of (N, C, L) or (C, L).

    Args:
        kernel_size, stride, padding, ceil_mode, count_include_pad: as for ``AvgPool2d``.

    Raises:
        ValueError: (of a call) as for ``AvgPool2d``.
    """

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(AvgPool1d):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return type(self)._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPool):
    """Mean of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: size of the window; one number, or one for each dimension, as for those that follow.
        stride: step from one stop of the window to the next; ``kernel_size`` if ``None``.
        padding: zeros on each side; at most half the window.
        ceil_mode: whether a last window that reaches beyond the padding counts too.
        count_include_pad: whether the padding's zeros count in the means.
        divisor_override: what sums are divided by instead of the number of elements.

    Raises:
        ValueError: (of a call) the shapes do not fit, or the padding is more than half the window.
    """

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """Mean of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: as for ``AvgPool2d``.

    Raises:
        ValueError: (of a call) as for ``AvgPool2d``.
    """

    _function = staticmethod(F.avg_pool3d)


class _LPPool(Module):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the norms."""
        return type(self)._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """Norm of each window of (N, C, L) or (C, L): ``sum(x ** norm_type) ** (1 / norm_type)``.

    Args:
        norm_type, kernel_size, stride, ceil_mode: as for ``LPPool2d``.

    Raises:
        ValueError: (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """Norm of each window of (N, C, H, W) or (C, H, W): ``sum(x ** norm_type) ** (1 / norm_type)``.

    Args:
        norm_type: order of the norm, not 0.
        kernel_size: size of the window; one number, or one for each dimension, as for those that follow.
        stride: step from one stop of the window to the next; ``kernel_size`` if ``None``.
        ceil_mode: whether a last window that reaches beyond the input counts too.

    Raises:
        ValueError: (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """Norm of each window of (N, C, D, H, W) or (C, D, H, W): ``sum(x ** norm_type) ** (1 / norm_type)``.

    Args:
        norm_type, kernel_size, stride, ceil_mode: as for ``LPPool2d``.

    Raises:
        ValueError: (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.lp_pool3d)


class _AdaptivePool(Module):
    _function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: Sizes) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the parts' values: shape (N, C, *output_size), or without N as the input."""
        return type(self)._function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means of as many parts of (N, C, L) or (C, L) as asked for.

    Args:
        output_size: as for ``AdaptiveAvgPool2d``.

    Raises:
        ValueError: (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means of as many parts of (N, C, H, W) or (C, H, W) as asked for.

    Args:
        output_size: lengths of the result; one number, or one for each dimension, and ``None`` for the input's length.

    Raises:
        ValueError: (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means of as many parts of (N, C, D, H, W) or (C, D, H, W) as asked for.

    Args:
        output_size: as for ``AdaptiveAvgPool2d``.

    Raises:
        ValueError: (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(_AdaptivePool):
    def __init__(self, output_size: Sizes, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Return the largest elements, shape (N, C, *output_size), or without N as the input.

        With ``return_indices``, return their indices in the flattened image too.
        """
        return type(self)._function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Largest elements of as many parts of (N, C, L) or (C, L) as asked for.

    Args:
        output_size, return_indices: as for ``AdaptiveMaxPool2d``.

    Raises:
        ValueError: (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Largest elements of as many parts of (N, C, H, W) or (C, H, W) as asked for.

    Args:
        output_size: lengths of the result; one number, or one for each dimension, and ``None`` for the input's length.
        return_indices: whether calls also return the indices of the elements in the flattened image.

    Raises:
        ValueError: (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Largest elements of as many parts of (N, C, D, H, W) or (C, D, H, W) as asked for.

    Args:
        output_size, return_indices: as for ``AdaptiveMaxPool2d``.

    Raises:
        ValueError: (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.adaptive_max_pool3d)
