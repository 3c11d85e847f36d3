"""Resizing of images by interpolation: ``interpolate``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dtypes import uint8
from ...tensors import Tensor
from ...types import Array
from ..table.operation import operation
from .adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .arguments import one_each
from .resampling import RESAMPLE, Sources, Table, antialiased, cubic, in_integers, linear, nearest, resample, tables

# The modes for each number of spatial dimensions.
_MODES = {
    1: ("nearest", "nearest-exact", "linear", "area"),
    2: ("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
    3: ("nearest", "nearest-exact", "trilinear", "area"),
}
_OF_BYTES = ("bilinear", "bicubic")  # the modes that take uint8 as well


@operation(function=True)
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return an image resized by interpolation.

    Output element i is the input's value at position ``(i + 0.5) * scale - 0.5``, with ``scale = length / size``; with
    ``align_corners``, at position ``i * (length - 1) / (size - 1)``.

    Args:
        input: shape (N, C, L), (N, C, H, W) or (N, C, D, H, W); floating-point; "bilinear" and "bicubic" take uint8
            too, the two "nearest" modes any dtype.
        size: the new lengths; one number, or one for each dimension.
        scale_factor: instead of ``size``, the new lengths divided by the old ones, which are rounded down; one number, or
            one for each dimension.
        mode: "nearest" (which takes element ``floor(i * scale)``, as in PyTorch), "nearest-exact", "area" (means, as
            ``adaptive_avg_pool2d``), and "linear" for 3-d, "bilinear" or "bicubic" (Keys 1981, with a = -0.75) for 4-d,
            "trilinear" for 5-d input.
        align_corners: whether the centres of the corner elements, instead of their outer corners, keep their positions.
        recompute_scale_factor: whether ``scale`` is that of the rounded sizes instead of ``1 / scale_factor``.
        antialias: for "bilinear" and "bicubic", whether an image that becomes smaller is averaged over all elements
            between outputs.

    Returns:
        Shape (N, C, *size).

    Raises:
        TypeError: the input is of another dtype than the mode takes.
        ValueError: the shape, mode or other arguments do not fit each other.
    """
    dims = input.ndim - 2
    if dims not in _MODES:
        raise ValueError(f"the input must have shape (N, C, L), (N, C, H, W) or (N, C, D, H, W), not {input.shape}")
    _check_mode(input, dims, mode, align_corners, antialias)
    lengths = input.shape[2:]
    sizes, factors = _sizes(lengths, size, scale_factor, bool(recompute_scale_factor))
    if min(lengths) < 1 or min(sizes) < 1:
        raise ValueError(f"lengths must be positive, and {lengths} would become {sizes}")
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[dims - 1](input, sizes)
    sources, option = _sources(mode, bool(align_corners), antialias)
    result = input
    # From the last dimension to the first: elements next to each other in memory are resampled first.
    for axis in reversed(range(dims)):
        scale = _scale(lengths[axis], sizes[axis], factors[axis], bool(align_corners))
        table = tables(sources, lengths[axis], sizes[axis], scale, option)
        of_bytes = mode in _OF_BYTES and input.dtype == uint8
        result = _bytes_resampled(result._array, axis + 2, table[0]) if of_bytes else RESAMPLE(result, axis + 2, *table)
    return result


def _bytes_resampled(x: Array, axis: int, table: Table) -> Tensor:
    """Return bytes resampled along one dimension, rounded to bytes again: so does PyTorch after each dimension."""
    whole, bits = in_integers(table)
    wide = resample(x.astype(np.int64), axis, whole)
    return Tensor(np.clip((wide + (1 << bits >> 1)) >> bits, 0, 255).astype(np.uint8))


def _scale(length: int, size: int, factor: float | None, align_corners: bool) -> float:
    if align_corners:
        return (length - 1) / (size - 1) if size > 1 else 0.0
    return length / size if factor is None else 1 / factor


def _sources(mode: str, align_corners: bool, antialias: bool) -> tuple[Callable[..., Sources], bool]:
    """Return the function that gives the sources of an output element, and its last argument."""
    if mode.startswith("nearest"):
        return nearest, mode == "nearest-exact"
    if antialias:
        return antialiased, mode == "bicubic"
    return cubic if mode == "bicubic" else linear, align_corners


def _check_mode(input: Tensor, dims: int, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in _MODES[dims]:
        known = ", ".join(f'"{each}"' for each in _MODES[dims])
        raise ValueError(f"mode of a {dims + 2}-d input must be one of {known}, and you gave {mode!r}")
    if align_corners is not None and not mode.endswith(("linear", "cubic")):
        raise ValueError(f"align_corners has no meaning with mode={mode!r}; leave it out")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f'antialias=True needs mode "bilinear" or "bicubic", and you gave {mode!r}')
    of_bytes = mode in _OF_BYTES and input.dtype == uint8
    if not mode.startswith("nearest") and not input.is_floating_point() and not of_bytes:
        raise TypeError(f"mode={mode!r} needs a floating-point input, not {input.dtype}")


def _sizes(
    lengths: tuple[int, ...], size: Any, factor: Any, recompute: bool
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Return the new lengths, and for each dimension the factor from which the scale is computed, or ``None``."""
    dims = len(lengths)
    if (size is None) == (factor is None):
        raise ValueError("give either size or scale_factor")
    if size is None:
        factors = tuple(map(float, one_each("scale_factor", factor, dims)))
        sizes = tuple(math.floor(length * each) for length, each in zip(lengths, factors))
        return sizes, (None,) * dims if recompute else factors
    if recompute:
        raise ValueError("recompute_scale_factor needs scale_factor, not size")
    return tuple(map(int, one_each("size", size, dims))), (None,) * dims
