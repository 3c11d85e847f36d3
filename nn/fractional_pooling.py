"""Layers of pooling by the largest elements of windows at fractional steps."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..core.extend import Tensor
from . import functional as F
from .module import Module

Ints = int | Sequence[int]


class _FractionalMaxPool(Module):
    _function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{type(self).__name__}() takes either output_size or output_ratio")
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        """Return the largest elements, and with ``return_indices`` their indices in the flattened image."""
        return type(self)._function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Largest element of each window of (N, C, H, W) or (C, H, W); the windows' steps are drawn at each call.

    Args:
        kernel_size: size of the window; one number, or one for each dimension, as for those that follow.
        output_size: number of windows.
        output_ratio: instead, the number of windows divided by the length, between 0 and 1.
        return_indices: whether calls also return the indices of the elements, as ``MaxUnpool2d`` takes them.
        _random_samples: numbers between 0 and 1 to use instead of drawn ones, shape (N, C, 2).

    Raises:
        ValueError: both or none of ``output_size`` and ``output_ratio`` are given; (of a call) the shapes do not fit.
    """

    _function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """Largest element of each window of (N, C, D, H, W) or (C, D, H, W); the windows' steps are drawn at each call.

    Args:
        kernel_size, output_size, output_ratio, return_indices: as for ``FractionalMaxPool2d``.
        _random_samples: numbers between 0 and 1 to use instead of drawn ones, shape (N, C, 3).

    Raises:
        ValueError: as for ``FractionalMaxPool2d``.
    """

    _function = staticmethod(F.fractional_max_pool3d)
