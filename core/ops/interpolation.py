"""Images in another size: ``interpolate``, and adaptive pooling, whose result has the size that is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from ..operation import operation
from ..tensors import Tensor
from ..types import Array
from . import resampling
from .average_pooling import avg_pool1d, avg_pool2d, avg_pool3d
from .index.scatter import gather
from .max_pooling import max_pool1d, max_pool2d, max_pool3d
from .reduce.reductions import mean
from .resampling import Taps
from .shape.reshaping import reshape
from .sliding import at_least
from .sliding_arguments import batched
from .table.linear_map import LinearMap

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "interpolate",
]
METHODS = ()

Sizes = int | None | Sequence[int | None]
_RESAMPLE = LinearMap(
    "resample", resampling.resample, lambda g, shape, axis, table: resampling.resample(g, axis, table.mT)
)
# What each number of dimensions beside batch and channels may be interpolated with.
_MODES = {
    1: ("nearest", "nearest-exact", "linear", "area"),
    2: ("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
    3: ("nearest", "nearest-exact", "trilinear", "area"),
}


@operation
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """An image of another size.

    Args:
        input: shape (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the new lengths; one number, or one for each dimension.
        scale_factor: instead of ``size``, how many times as large.
        mode: "nearest" (as PyTorch's, half an element off), "nearest-exact", "area" (means), and "linear" for 3-d,
            "bilinear" or "bicubic" for 4-d, "trilinear" for 5-d input.
        align_corners: whether the centres of the corner elements, and not their corners, lie on each other.
        recompute_scale_factor: whether the scale is that of the sizes, and not ``scale_factor`` itself.
        antialias: for "bilinear" and "bicubic", whether no element is passed over when the image becomes smaller.

    Raises:
        TypeError: not floating point, for modes other than "nearest".
        ValueError: the shape, mode or other arguments do not fit each other.
    """
    dims = input.ndim - 2
    if dims not in _MODES:
        raise ValueError(f"the input must have shape (N, C, L), (N, C, H, W) or (N, C, D, H, W), not {input.shape}")
    _check_mode(input, dims, mode, align_corners, antialias)
    lengths = input.shape[2:]
    sizes, scales = _sizes(lengths, size, scale_factor, bool(recompute_scale_factor))
    if min(lengths) < 1 or min(sizes) < 1:
        raise ValueError(f"lengths must be positive, and {lengths} would become {sizes}")
    if mode == "area":
        return _adaptive_avg(dims, input, sizes)
    result = input
    # From the last dimension on: what is larger by then is next to each other in memory.
    for axis in reversed(range(dims)):
        table = _table(mode, lengths[axis], sizes[axis], scales[axis], bool(align_corners), antialias)
        result = _RESAMPLE(result, axis + 2, table)
    return result


def _table(mode: str, length: int, size: int, factor: float | None, align_corners: bool, antialias: bool) -> Taps:
    if align_corners:
        scale = (length - 1) / (size - 1) if size > 1 else 0.0
    else:
        scale = length / size if factor is None else 1 / factor
    if mode.startswith("nearest"):
        return resampling.nearest(length, size, scale, mode == "nearest-exact")
    if antialias:
        return resampling.smoothed(length, size, scale, mode == "bicubic")
    make = resampling.cubic if mode == "bicubic" else resampling.linear
    return make(length, size, scale, align_corners)


def _check_mode(input: Tensor, dims: int, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in _MODES[dims]:
        known = ", ".join(f'"{each}"' for each in _MODES[dims])
        raise ValueError(f"mode of a {dims + 2}-d input must be one of {known}, and you gave {mode!r}")
    smooth = mode in ("linear", "bilinear", "bicubic", "trilinear")
    if align_corners is not None and not smooth:
        raise ValueError(f"align_corners has no meaning with mode={mode!r}; leave it out")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f'antialias=True needs mode "bilinear" or "bicubic", and you gave {mode!r}')
    if not mode.startswith("nearest") and not input.is_floating_point():
        raise TypeError(f"mode={mode!r} needs a floating-point input, not {input.dtype}")


def _sizes(
    lengths: tuple[int, ...], size: Any, factor: Any, recompute: bool
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    dims = len(lengths)
    if (size is None) == (factor is None):
        raise ValueError("give either size or scale_factor")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor needs scale_factor, not size")
        sizes = _one_each("size", size, dims)
        return tuple(int(each) for each in sizes), (None,) * dims
    factors = tuple(float(each) for each in _one_each("scale_factor", factor, dims))
    sizes = tuple(int(np.floor(length * each)) for length, each in zip(lengths, factors))
    return sizes, (None,) * dims if recompute else factors


def _one_each(name: str, value: Any, dims: int) -> tuple[Any, ...]:
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims
    if len(given) != dims:
        raise ValueError(f"{name} must be a number or {dims} of them, and you gave {value}")
    return given


# -- adaptive pooling


@operation
def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """``adaptive_avg_pool2d`` in one dimension: of (N, C, L) or (C, L)."""
    return _adaptive_avg(1, input, output_size)


@operation
def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """The means of as many parts of an image as asked for.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        output_size: how many; one number, or one for each dimension, of which ``None`` is as many as there are elements.

    Raises:
        ValueError: the shapes do not fit.
    """
    return _adaptive_avg(2, input, output_size)


@operation
def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """``adaptive_avg_pool2d`` in three dimensions: of (N, C, D, H, W) or (C, D, H, W)."""
    return _adaptive_avg(3, input, output_size)


@overload
def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@operation
def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """``adaptive_max_pool2d`` in one dimension: of (N, C, L) or (C, L)."""
    return _adaptive_max(1, input, output_size, return_indices)


@overload
def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@operation
def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The largest element of each of as many parts of an image as asked for; arguments as ``adaptive_avg_pool2d``.

    With ``return_indices``, where they were in the flattened image (H * W) too.
    """
    return _adaptive_max(2, input, output_size, return_indices)


@overload
def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@operation
def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """``adaptive_max_pool2d`` in three dimensions: of (N, C, D, H, W) or (C, D, H, W)."""
    return _adaptive_max(3, input, output_size, return_indices)


def _adaptive_sizes(lengths: tuple[int, ...], output_size: Sizes) -> tuple[int, ...]:
    given = _one_each("output_size", output_size, len(lengths))
    sizes = tuple(length if size is None else int(size) for length, size in zip(lengths, given))
    at_least(1, output_size=sizes)
    if min(lengths) < 1:
        raise ValueError(f"there is nothing to pool in an input with the lengths {lengths}")
    return sizes


def _adaptive_avg(dims: int, input: Tensor, output_size: Sizes) -> Tensor:
    lengths = batched(input, dims).shape[2:]
    sizes = _adaptive_sizes(lengths, output_size)
    if sizes == (1,) * dims and input.is_floating_point():
        return mean(input, tuple(range(-dims, 0)), True)
    if not any(length % size for length, size in zip(lengths, sizes)):
        pool: Any = (avg_pool1d, avg_pool2d, avg_pool3d)[dims - 1]
        return pool(input, tuple(length // size for length, size in zip(lengths, sizes)))
    if not input.is_floating_point():
        raise TypeError(f"means are floating-point numbers, and the input is {input.dtype}; convert it first")
    result = input
    for axis, (length, size) in enumerate(zip(lengths, sizes), input.ndim - dims):
        result = _RESAMPLE(result, axis, resampling.means(length, size))
    return result


def _adaptive_max(dims: int, input: Tensor, output_size: Sizes, return_indices: bool) -> Any:
    lengths = batched(input, dims).shape[2:]
    sizes = _adaptive_sizes(lengths, output_size)
    if not any(length % size for length, size in zip(lengths, sizes)):
        pool: Any = (max_pool1d, max_pool2d, max_pool3d)[dims - 1]
        return pool(input, tuple(length // size for length, size in zip(lengths, sizes)), return_indices=return_indices)
    flat = reshape(input, (*input.shape[:-dims], -1))
    candidates = _candidates(lengths, sizes)
    best = flat._array[..., candidates].argmax(axis=-1)
    indices = Tensor(np.take_along_axis(candidates, best.reshape(-1, len(candidates)).T, axis=1).T.reshape(best.shape))
    shape = (*input.shape[:-dims], *sizes)
    result = reshape(gather(flat, -1, indices), shape)
    return (result, reshape(indices, shape)) if return_indices else result


def _candidates(lengths: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    """For each output, the numbers of the elements of its part in the flattened image; the last one repeats."""
    numbers = np.arange(int(np.prod(lengths))).reshape(lengths)
    parts = [resampling.uneven_parts(length, size) for length, size in zip(lengths, sizes)]
    rows = [numbers[np.ix_(*part)].reshape(-1) for part in itertools.product(*parts)]
    longest = max(map(len, rows))
    return np.stack([np.pad(row, (0, longest - len(row)), mode="edge") for row in rows])
