"""Pooling by the largest element of windows whose steps are drawn at random (Graham, "Fractional max-pooling", 2014)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..index.scatter import gather
from ..random.sampling import rand
from ..shape.reshaping import reshape
from .arguments import batched, in_dims, one_each, per_dim, unbatched
from .window import Ints


def _fractional_max_pool(
    dims: int,
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest element of each window; windows begin at steps that are drawn for each image and channel.

    Args:
        input: shape (N, C, {image}) or (C, {image}), of any real dtype.
        kernel_size: size of the window; one number, or one for each dimension.
        output_size: number of windows; one number, or one for each dimension.
        output_ratio: instead, the number of windows divided by the length, between 0 and 1.
        return_indices: whether to return the indices of the elements in the flattened image as well, int64.
        _random_samples: numbers between 0 and 1 to use instead of drawn ones, shape (N, C, number of dimensions).

    Returns:
        Shape (N, C, {stops}) or (C, {stops}), with ``output_size`` windows. With ``return_indices``, a tuple of two such
        tensors.

    Raises:
        ValueError: the shapes do not fit, or both or none of ``output_size`` and ``output_ratio`` are given.
    """
    x = batched(input, dims)
    lengths, kernel = x.shape[2:], per_dim("kernel_size", kernel_size, dims)
    sizes = _sizes(lengths, output_size, output_ratio)
    if any(not 0 < size <= length - of_window + 1 for size, length, of_window in zip(sizes, lengths, kernel)):
        raise ValueError(f"{sizes} windows of size {kernel} do not fit into an image of {lengths}")
    samples = rand(*x.shape[:2], dims, dtype=x.dtype) if _random_samples is None else _random_samples
    if samples.ndim != 3 or len(samples) < len(x) or samples.shape[1:] != (x.shape[1], dims):
        raise ValueError(f"_random_samples must have shape {(*x.shape[:2], dims)}, not {samples.shape}")
    # PyTorch takes the samples of images from the last dimension on, and those of volumes from the first.
    drawn = samples._array[: len(x), :, :: 1 if dims == 3 else -1]
    starts = [_starts(drawn[..., n], *each) for n, each in enumerate(zip(lengths, kernel, sizes))]
    chosen = _largest(x._array, starts, kernel)
    rows = Tensor(chosen.reshape(*x.shape[:2], math.prod(sizes)))
    picked = gather(reshape(x, (*x.shape[:2], math.prod(lengths))), 2, rows)
    result = unbatched(reshape(picked, chosen.shape), input)
    return (result, Tensor(chosen.reshape(result.shape))) if return_indices else result


fractional_max_pool2d = in_dims(2, _fractional_max_pool)
fractional_max_pool3d = in_dims(3, _fractional_max_pool)


def _sizes(lengths: tuple[int, ...], size: Ints | None, ratio: Any) -> tuple[int, ...]:
    if (size is None) == (ratio is None):
        raise ValueError("give either output_size or output_ratio")
    if size is not None:
        return per_dim("output_size", size, len(lengths))
    ratios = one_each("output_ratio", ratio, len(lengths))
    if any(not 0 < each < 1 for each in ratios):
        raise ValueError(f"output_ratio must be between 0 and 1, and you gave {ratio}")
    return tuple(int(length * each) for length, each in zip(lengths, ratios))


def _starts(samples: Array, length: int, kernel: int, size: int) -> Array:
    """Return the first element of each window of one dimension, (N, C, size), of samples (N, C)."""
    if size == 1:
        return np.full((*samples.shape, 1), length - kernel)
    alpha = samples.dtype.type((length - kernel) / (size - 1))
    steps = np.arange(size - 1, dtype=samples.dtype)
    inner = ((samples[..., None] + steps) * alpha).astype(np.int64) - (samples[..., None] * alpha).astype(np.int64)
    return np.concatenate([inner, np.full((*samples.shape, 1), length - kernel)], -1)


def _largest(x: Array, starts: Sequence[Array], kernel: Sequence[int]) -> Array:
    """Return the places of the largest elements in the flattened image, (N, C, {stops}); the first of equal ones, or a nan."""
    dims, place = len(kernel), np.zeros((1,) * (2 + 2 * len(kernel)), np.int64)
    for axis, (start, of_window, length) in enumerate(zip(starts, kernel, x.shape[2:])):
        stops = start.reshape(
            *start.shape[:2], *(start.shape[2] if n == axis else 1 for n in range(dims)), *(1,) * dims
        )
        offsets = np.arange(of_window).reshape(-1, *(1,) * (dims - axis - 1))
        place = place * length + stops + offsets
    windows = place.reshape(*place.shape[: 2 + dims], math.prod(kernel))
    flat = windows.reshape(*x.shape[:2], math.prod(windows.shape[2:]))
    values = np.take_along_axis(x.reshape(*x.shape[:2], math.prod(x.shape[2:])), flat, 2).reshape(windows.shape)
    return np.take_along_axis(windows, values.argmax(-1)[..., None], -1)[..., 0]
