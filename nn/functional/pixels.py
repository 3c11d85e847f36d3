"""Rearrangements of pixels and channels."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from ...core.extend import Tensor, operation

__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


@operation
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return an image whose pixels are made of groups of channels (Shi et al. 2016).

    ``output[..., c, h * r + i, w * r + j] = input[..., c * r * r + i * r + j, h, w]``, with r for ``upscale_factor``.

    Args:
        input: shape (..., C * r * r, H, W), of any dtype.
        upscale_factor: r, at least 1.

    Returns:
        Shape (..., C, H * r, W * r), never a view.

    Raises:
        ValueError: ``r * r`` does not divide the channels.
    """
    r = upscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r):
        raise ValueError(f"the input must have shape (..., C * {r * r}, H, W), not {input.shape}")
    *before, channels, height, width = input.shape
    parts = input.reshape(*before, channels // (r * r), r, r, height, width)
    n = len(before)
    mixed = parts.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    result = mixed.reshape(*before, channels // (r * r), height * r, width * r)
    return result.clone() if r == 1 else result  # never a view


@operation
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return an image whose channels are made of blocks of pixels: the inverse of ``pixel_shuffle``.

    Args:
        input: shape (..., C, H * r, W * r), of any dtype.
        downscale_factor: r, at least 1.

    Returns:
        Shape (..., C * r * r, H, W), never a view.

    Raises:
        ValueError: ``downscale_factor`` does not divide height and width.
    """
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-2] % r or input.shape[-1] % r:
        raise ValueError(f"the input must have shape (..., C, H * {r}, W * {r}), not {input.shape}")
    *before, channels, height, width = input.shape
    parts = input.reshape(*before, channels, height // r, r, width // r, r)
    n = len(before)
    mixed = parts.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    result = mixed.reshape(*before, channels * r * r, height // r, width // r)
    return result.clone() if r == 1 else result


@operation
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return the channels in another order: the first of each group, then the second of each, and so on.

    Args:
        input: shape (N, C, ...), of any dtype, whose channels are in ``groups`` groups.
        groups: number of groups, at least 1.

    Returns:
        The input's shape.

    Raises:
        ValueError: the groups do not divide the channels.
    """
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        raise ValueError(f"groups={groups} must divide the channels of an input (N, C, ...) of shape {input.shape}")
    count, channels, *lengths = input.shape
    return input.reshape(count, groups, channels // groups, *lengths).transpose(1, 2).reshape(input.shape)
