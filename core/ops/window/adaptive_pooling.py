"""Pooling of one to three dimensions into a given number of parts, by the mean or the largest element of each part.

If the number divides the length of the input, the parts are windows of one size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol, cast, overload

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..index.scatter import gather
from ..reduce.reductions import mean
from ..shape.reshaping import reshape
from .arguments import at_least, batched, in_dims, one_each
from .max_pooling import max_pool1d, max_pool2d, max_pool3d
from .pooling import avg_pool1d, avg_pool2d, avg_pool3d, check_floating
from .resampling import RESAMPLE, Sources, tables

Sizes = int | None | Sequence[int | None]


def _adaptive_avg_pool(dims: int, input: Tensor, output_size: Sizes) -> Tensor:
    """Return the means of a given number of parts of an image.

    Output i is the mean of inputs ``i * length // size`` up to ``ceil((i + 1) * length / size)``. So parts overlap where
    ``size`` does not divide ``length``.

    Args:
        input: shape (N, C, {image}) or (C, {image}), floating-point.
        output_size: lengths of the result; one number, or one for each dimension, and ``None`` for the input's length.

    Returns:
        Shape (N, C, *output_size) or (C, *output_size).

    Raises:
        TypeError: the input is not floating-point.
        ValueError: the shapes do not fit, or the input has a length of 0.
    """
    lengths = batched(input, dims).shape[2:]
    sizes = _output_sizes(lengths, output_size)
    if sizes == (1,) * dims and input.is_floating_point():
        return mean(input, tuple(range(-dims, 0)), True)
    if not any(length % size for length, size in zip(lengths, sizes)):
        pool: Any = (avg_pool1d, avg_pool2d, avg_pool3d)[dims - 1]
        return pool(input, tuple(length // size for length, size in zip(lengths, sizes)))
    check_floating(input)
    result = input
    for axis, (length, size) in enumerate(zip(lengths, sizes), input.ndim - dims):
        result = RESAMPLE(result, axis, *tables(_part_mean, length, size, size))
    return result


adaptive_avg_pool1d = in_dims(1, _adaptive_avg_pool)
adaptive_avg_pool2d = in_dims(2, _adaptive_avg_pool)
adaptive_avg_pool3d = in_dims(3, _adaptive_avg_pool)


class AdaptiveMaxPool(Protocol):
    """Signature of ``adaptive_max_pool1d``, ``adaptive_max_pool2d`` and ``adaptive_max_pool3d``."""

    @overload
    def __call__(self, input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...) -> Tensor: ...
    @overload
    def __call__(self, input: Tensor, output_size: Sizes, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...


def _adaptive_max_pool(dims: int, input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """Return the largest elements of a given number of parts of an image, those of ``adaptive_avg_pool{dims}d``.

    Args:
        input: shape (N, C, {image}) or (C, {image}), of any real dtype.
        output_size: lengths of the result; one number, or one for each dimension, and ``None`` for the input's length.
        return_indices: whether to return the indices of the elements in the flattened image as well, int64.

    Returns:
        Shape (N, C, *output_size) or (C, *output_size); with ``return_indices``, a tuple of two such tensors.

    Raises:
        ValueError: the shapes do not fit, or the input has a length of 0.
    """
    lengths = batched(input, dims).shape[2:]
    sizes = _output_sizes(lengths, output_size)
    if not any(length % size for length, size in zip(lengths, sizes)):
        kernel = tuple(length // size for length, size in zip(lengths, sizes))
        pool: Any = (max_pool1d, max_pool2d, max_pool3d)[dims - 1]
        return pool(input, kernel, return_indices=return_indices)
    pixels = reshape(input, (*input.shape[:-dims], -1))
    candidates = _candidates(lengths, sizes)
    best = pixels._array[..., candidates].argmax(axis=-1)
    indices = Tensor(candidates[np.arange(len(candidates)), best])
    shape = (*input.shape[:-dims], *sizes)
    result = reshape(gather(pixels, -1, indices), shape)
    return (result, reshape(indices, shape)) if return_indices else result


adaptive_max_pool1d = cast(AdaptiveMaxPool, in_dims(1, _adaptive_max_pool))
adaptive_max_pool2d = cast(AdaptiveMaxPool, in_dims(2, _adaptive_max_pool))
adaptive_max_pool3d = cast(AdaptiveMaxPool, in_dims(3, _adaptive_max_pool))


def _candidates(lengths: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    """Return for each output the indices of its part in the flattened image; the last one repeats."""
    numbers = np.arange(math.prod(lengths)).reshape(lengths)
    parts = [[_part(output, length, size) for output in range(size)] for length, size in zip(lengths, sizes)]
    rows = [numbers[np.ix_(*ranges)].reshape(-1) for ranges in itertools.product(*parts)]
    longest = max(map(len, rows))
    return np.stack([np.pad(row, (0, longest - len(row)), mode="edge") for row in rows])


def _output_sizes(input_size: tuple[int, ...], output_size: Sizes) -> tuple[int, ...]:
    """Return the output size of adaptive pooling, with the input's length for ``None``.

    Raises:
        ValueError: the number of sizes is not that of dimensions, a size is below 1, or the input has no elements.
    """
    given = one_each("output_size", output_size, len(input_size))
    sizes = tuple(length if size is None else int(size) for length, size in zip(input_size, given))
    at_least(1, output_size=sizes)
    if min(input_size) < 1:
        raise ValueError(f"there is nothing to pool in an input with the lengths {input_size}")
    return sizes


def _part_mean(output: int, length: int, size: int) -> Sources:
    """Return the inputs of one part of adaptive pooling, each with the same weight."""
    inputs = _part(output, length, size)
    return [(source, 1 / len(inputs)) for source in inputs]


def _part(output: int, length: int, size: int) -> range:
    """Return the inputs of one output of adaptive pooling; parts overlap where ``size`` does not divide ``length``."""
    return range(output * length // size, -(-(output + 1) * length // size))
