"""Pooling and interpolation, under the names of ``torch.nn.functional``."""

from __future__ import annotations

from functools import partial

from ...core import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
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
]

max_pool1d_with_indices = partial(max_pool1d, return_indices=True)
max_pool2d_with_indices = partial(max_pool2d, return_indices=True)
max_pool3d_with_indices = partial(max_pool3d, return_indices=True)
adaptive_max_pool1d_with_indices = partial(adaptive_max_pool1d, return_indices=True)
adaptive_max_pool2d_with_indices = partial(adaptive_max_pool2d, return_indices=True)
adaptive_max_pool3d_with_indices = partial(adaptive_max_pool3d, return_indices=True)
for _function in (
    max_pool1d_with_indices,
    max_pool2d_with_indices,
    max_pool3d_with_indices,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
):
    _function.__doc__ = _function.func.__doc__
