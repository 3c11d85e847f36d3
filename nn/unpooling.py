"""Layers that put elements back where pooling found them."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from ..core.extend import Tensor
from . import functional as F
from .module import Module

Ints = int | Sequence[int]


class _MaxUnpool(Module):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the elements at their indices, among zeros.

        Args:
            input: as for the function of the same dimensions, for example ``functional.max_unpool2d``.
            indices: of the same shape, integers: indices in the flattened result.
            output_size: the result's shape or last dimensions, of which several are pooled to one size.
        """
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Elements at the indices where ``MaxPool1d(return_indices=True)`` found them, among zeros.

    Args:
        kernel_size, stride, padding: as for ``MaxUnpool2d``.

    Raises:
        ValueError: (of a call) the shapes differ, or an index is not within the image.
    """

    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Elements at the indices where ``MaxPool2d(return_indices=True)`` found them, among zeros.

    Args:
        kernel_size, stride, padding: as those of the pooling layer.

    Raises:
        ValueError: (of a call) the shapes differ, or an index is not within the image.
    """

    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Elements at the indices where ``MaxPool3d(return_indices=True)`` found them, among zeros.

    Args:
        kernel_size, stride, padding: as for ``MaxUnpool2d``.

    Raises:
        ValueError: (of a call) the shapes differ, or an index is not within the image.
    """

    _function = staticmethod(F.max_unpool3d)
