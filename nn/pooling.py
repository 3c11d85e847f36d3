"""Pooling layers of one to three dimensions; what they compute is in ``functional``, under the names with underscores."""
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
        """The largest elements; with ``return_indices``, and where they were."""
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
    """``MaxPool2d`` in one dimension: of (N, C, L) or (C, L)."""

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: of the window; one number, or one for each dimension, as for those that follow.
        stride: how far it moves; as far as it is large, if ``None``.
        padding: how many elements on each side count as -inf; at most half the window.
        dilation: how far apart the elements are that it sees.
        return_indices: whether calls also return where the largest ones were, as ``MaxUnpool2d`` takes it.
        ceil_mode: whether a last window that reaches beyond the padding counts too.

    Raises:
        ValueError: (of a call) the shapes do not fit, or the padding is more than half the window.
    """

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """``MaxPool2d`` in three dimensions: of (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(F.max_pool3d)


class _MaxUnpool(Module):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The elements where they were, among zeros."""
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Undoes ``MaxPool1d(return_indices=True)``, with zeros for the elements that were not the largest."""

    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Undoes ``MaxPool2d(return_indices=True)``, with zeros for the elements that were not the largest."""

    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Undoes ``MaxPool3d(return_indices=True)``, with zeros for the elements that were not the largest."""

    _function = staticmethod(F.max_unpool3d)


class AvgPool1d(Module):
    """``AvgPool2d`` in one dimension, without ``divisor_override``: of (N, C, L) or (C, L)."""

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
        """The means."""
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
        """The means."""
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
    """The mean of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size, stride, padding, ceil_mode: as those of ``MaxPool2d``.
        count_include_pad: whether the padding's zeros count in the means.
        divisor_override: what sums are divided by, instead of the number of elements.

    Raises:
        ValueError: (of a call) the shapes do not fit, or the padding is more than half the window.
    """

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """``AvgPool2d`` in three dimensions: of (N, C, D, H, W) or (C, D, H, W)."""

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
        """The norms."""
        return type(self)._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The norm of order ``norm_type`` of each window of (N, C, L) or (C, L)."""

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The norm of order ``norm_type`` of each window of (N, C, H, W) or (C, H, W)."""

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The norm of order ``norm_type`` of each window of (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(F.lp_pool3d)


class _AdaptivePool(Module):
    _function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: Sizes) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, *output_size), or without N as the input."""
        return type(self)._function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """The means of ``output_size`` parts of (N, C, L) or (C, L)."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptivePool):
    """The means of ``output_size`` parts of (N, C, H, W) or (C, H, W).

    That is one number, or one for each dimension, of which ``None`` stands for the length that it has.
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptivePool):
    """The means of ``output_size`` parts of (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(_AdaptivePool):
    def __init__(self, output_size: Sizes, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Shape (N, C, *output_size), or without N as the input; with ``return_indices``, and where they were."""
        return type(self)._function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of ``output_size`` parts of (N, C, L) or (C, L)."""

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of ``output_size`` parts of (N, C, H, W) or (C, H, W)."""

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of ``output_size`` parts of (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(F.adaptive_max_pool3d)
