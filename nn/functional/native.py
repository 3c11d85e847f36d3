"""Functions that PyTorch has at its top only: ``native_group_norm`` and the samplers of grids that take numbers as modes."""
# ruff: noqa: A002, N803 - PyTorch names its arguments so

from __future__ import annotations

from ... import core
from ...core.extend import Tensor, operation
from .grid_sampling import grid_sample
from .normalization import group_norm

__all__ = ["grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "native_group_norm"]

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


@operation
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``group_norm``, and the mean and the rate ``1 / sqrt(variance + eps)`` of each group.

    Args:
        input: shape (N, C, ...), floating-point.
        weight, bias: shape (C,), or ``None``.
        N: number of samples.
        C: number of channels.
        HxW: number of elements of a channel.
        group: number of groups of channels.
        eps: added to the biased variance.

    Returns:
        The input's shape, (N, group) and (N, group); the last two are of the weight's dtype, if that is wider.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: the numbers do not fit the input, or the groups do not divide the channels.
    """
    if input.ndim < 2 or input.shape[:2] != (N, C) or input.numel() != N * C * HxW:
        raise ValueError(f"an input of shape {input.shape} does not have N={N}, C={C} and HxW={HxW}")
    result = group_norm(input, group, weight, bias, eps)
    dtype = input.dtype if weight is None else core.promote_types(input.dtype, weight.dtype)
    groups = input.to(core.promote_types(dtype, core.float32)).reshape(N, group, C // group * HxW)
    rate = (core.var(groups, 2, correction=0) + eps) ** -0.5
    return result, core.mean(groups, 2).to(dtype), rate.to(dtype)


@operation
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return ``grid_sample`` of an image or a volume, with numbers as modes. Errors: those of ``grid_sample``.

    Args:
        input: shape (N, C, H, W) or (N, C, D, H, W), floating-point.
        grid: shape (N, H', W', 2) or (N, D', H', W', 3).
        interpolation_mode: 0 for "bilinear", 1 for "nearest", 2 for "bicubic".
        padding_mode: 0 for "zeros", 1 for "border", 2 for "reflection".
        align_corners: whether -1 and 1 are the centres of the outermost pixels instead of their outer edges.
    """
    if interpolation_mode not in range(3) or padding_mode not in range(3):
        raise ValueError(
            f"interpolation_mode and padding_mode must be 0, 1 or 2, not {interpolation_mode} and {padding_mode}"
        )
    return grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


@operation
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return ``grid_sampler`` of an image. Errors: those of ``grid_sample``.

    Args:
        input: shape (N, C, H, W), floating-point.
        grid: shape (N, H', W', 2).
        interpolation_mode: 0 for "bilinear", 1 for "nearest", 2 for "bicubic".
        padding_mode: 0 for "zeros", 1 for "border", 2 for "reflection".
        align_corners: whether -1 and 1 are the centres of the outermost pixels instead of their outer edges.
    """
    return _of_dims(2, input, grid, interpolation_mode, padding_mode, align_corners)


@operation
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return ``grid_sampler`` of a volume. Errors: those of ``grid_sample``.

    Args:
        input: shape (N, C, D, H, W), floating-point.
        grid: shape (N, D', H', W', 3).
        interpolation_mode: 0 for "bilinear", 1 for "nearest".
        padding_mode: 0 for "zeros", 1 for "border", 2 for "reflection".
        align_corners: whether -1 and 1 are the centres of the outermost pixels instead of their outer edges.
    """
    return _of_dims(3, input, grid, interpolation_mode, padding_mode, align_corners)


def _of_dims(dims: int, input: Tensor, grid: Tensor, mode: int, padding: int, corners: bool) -> Tensor:
    if input.ndim != dims + 2:
        raise ValueError(f"the input must have {dims + 2} dimensions, and its shape is {input.shape}")
    return grid_sampler(input, grid, mode, padding, corners)
