"""Layers that rearrange or resize: ``Flatten``, ``Unflatten``, ``Fold``, ``Unfold``, shuffles and ``Upsample``."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Sequence

from ..core.extend import Tensor
from . import functional as F
from .module import Module

Ints = int | Sequence[int]


class Flatten(Module):
    """Layer that joins several dimensions into one.

    Args:
        start_dim, end_dim: the first and the last of them; by default all but the batch.

    Raises:
        IndexError: (of a call) there is no such dimension.
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the input in the new shape."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Layer that splits one dimension into several.

    Args:
        dim: the dimension.
        unflattened_size: the new lengths, of which one may be -1.

    Raises:
        ValueError: (of a call) the lengths do not make up that of the dimension, or there is no such dimension.
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Return the input in the new shape."""
        if not -input.ndim <= self.dim < input.ndim:
            raise ValueError(f"Unflatten: there is no dim {self.dim} in an input of shape {input.shape}")
        dim = self.dim % input.ndim
        return input.reshape(*input.shape[:dim], *self.unflattened_size, *input.shape[dim + 1 :])

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Unfold(Module):
    """Patches of an image that a window sees, as columns: from (N, C, H, W) to (N, C * KH * KW, stops).

    Args:
        kernel_size, dilation, padding, stride: as for ``functional.unfold``.

    Raises:
        ValueError: (of a call) the window is larger than the padded input.
    """

    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """Sum of patches, given as columns, as an image: the adjoint of ``Unfold``.

    Args:
        output_size: H and W.
        kernel_size, dilation, padding, stride: as for ``functional.fold``.

    Raises:
        ValueError: (of a call) the input has not as many rows or columns as the other arguments say.
    """

    def __init__(
        self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the image."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"


class PixelShuffle(Module):
    """Layer that makes pixels of channels: from (..., C * r * r, H, W) to (..., C, H * r, W * r).

    Args:
        upscale_factor: r.

    Raises:
        ValueError: (of a call) ``r * r`` does not divide the channels.
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the larger image."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Layer that makes channels of pixels: from (..., C, H * r, W * r) to (..., C * r * r, H, W).

    Args:
        downscale_factor: r.

    Raises:
        ValueError: (of a call) r does not divide height and width.
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the smaller image."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Layer that takes the first channel of each group of (N, C, ...), then the second of each, and so on.

    Args:
        groups: number of groups.

    Raises:
        ValueError: (of a call) the groups do not divide the channels.
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Upsample(Module):
    """Layer that returns an image in another size; see ``functional.interpolate``.

    Args:
        size, scale_factor, mode, align_corners, recompute_scale_factor: as for ``functional.interpolate``.

    Raises:
        ValueError: (of a call) the shape, mode or other arguments do not fit each other.
    """

    def __init__(
        self,
        size: Ints | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the image."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        first = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{first}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """``Upsample`` with mode "nearest".

    Args:
        size, scale_factor: as for ``functional.interpolate``.
    """

    def __init__(self, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """``Upsample`` with mode "bilinear" and ``align_corners=True``.

    Args:
        size, scale_factor: as for ``functional.interpolate``.
    """

    def __init__(self, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)
