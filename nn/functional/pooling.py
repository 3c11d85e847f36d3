"""Pooling and interpolation, under the names of ``torch.nn.functional``."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...core import (
    Tensor,
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fractional_max_pool2d,
    fractional_max_pool3d,
    interpolate,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "interpolate",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

max_pool1d_with_indices = partial(max_pool1d, return_indices=True)
max_pool2d_with_indices = partial(max_pool2d, return_indices=True)
max_pool3d_with_indices = partial(max_pool3d, return_indices=True)
adaptive_max_pool1d_with_indices = partial(adaptive_max_pool1d, return_indices=True)
adaptive_max_pool2d_with_indices = partial(adaptive_max_pool2d, return_indices=True)
adaptive_max_pool3d_with_indices = partial(adaptive_max_pool3d, return_indices=True)
fractional_max_pool2d_with_indices = partial(fractional_max_pool2d, return_indices=True)
fractional_max_pool3d_with_indices = partial(fractional_max_pool3d, return_indices=True)
for _function in (
    max_pool1d_with_indices,
    max_pool2d_with_indices,
    max_pool3d_with_indices,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d_with_indices,
):
    _function.__doc__ = _function.func.__doc__


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Return ``interpolate`` with these arguments, whose older name this is.

    Args:
        input, size, scale_factor, mode, align_corners: as for ``interpolate``.
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Return ``interpolate(mode="nearest")``, whose older name this is.

    Args:
        input, size, scale_factor: as for ``interpolate``.
    """
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Return ``interpolate(mode="bilinear", align_corners=True)``, whose older name this is.

    Args:
        input, size, scale_factor: as for ``interpolate``.
    """
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)
