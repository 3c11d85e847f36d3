"""Weights of convolution as ``row_products`` has them: a matrix (outputs, elements * channels) for each column of a window."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from ...dtypes import wide_type
from ...types import Array
from .window import Window

CACHE = 1 << 18  # bytes of a weight that are copied at once: each column is another pass over them


def factors(weight: Array, groups: int) -> Array:
    """Return the factors: a view (groups, columns of the window, O // groups, elements of a column * C // groups).

    Args:
        weight: shape (O, C // groups, *kernel_size).
        groups: number of groups of channels.
    """
    seen = _by_columns(weight, groups)
    result = np.empty(seen.transpose(0, 1, 4, 3, 2).shape, wide_type(weight.dtype), like=weight)
    result[...] = seen.transpose(0, 1, 4, 3, 2)
    _, outputs, width, height, inputs = result.shape
    return result.reshape(groups, outputs, width, height * inputs).swapaxes(1, 2)


def factors_back(weight: Array, groups: int) -> Array:
    """Return the factors of ``products.weight_back``, the weight of a window that slides over the output.

    Args:
        weight, groups: those of ``factors``.
    """
    seen = np.flip(_by_columns(weight, groups), (3, 4)).transpose(0, 4, 3, 1, 2)
    result = np.empty(seen.shape, wide_type(weight.dtype), like=weight)
    for part in _parts(seen.shape[3], weight[:1].nbytes):
        result[:, :, :, part] = seen[:, :, :, part]
    _, width, height, outputs, inputs = result.shape
    return result.reshape(groups, width, height * outputs, inputs).swapaxes(2, 3)


def new_factors(output: Array, image: Array, window: Window, groups: int) -> Array:
    """Return factors of zeros, in memory of their own.

    Args:
        output, image: those of a convolution.
        window: slides over the image.
        groups: number of groups of channels.
    """
    *heights, width = window.kernel_size
    outputs, inputs = output.shape[1] // groups, image.shape[1] // groups
    result = np.zeros((groups, outputs, width, math.prod(heights) * inputs), wide_type(image.dtype), like=image)
    return result.swapaxes(1, 2)


def weight_of(factors: Array, elements: Array, whole: tuple[int, ...], like: Array) -> Array:
    """Return the weight of factors.

    Args:
        factors: from ``new_factors``.
        elements: the numbers of the elements, in the shape of their window, in the whole window. The others are 0.
        whole: lengths of that.
        like: array of the weight's dtype.
    """
    groups, width, outputs, depth = factors.shape
    height = elements.size // width
    inputs = depth // height
    result = np.empty((groups * outputs, inputs, math.prod(whole)), like.dtype, like=like)
    grouped = result.reshape(groups, outputs, inputs, result.shape[2])
    numbers: list[int] = elements.ravel().tolist()
    for part in _parts(outputs, result[:1].nbytes):
        if len(numbers) < result.shape[2]:
            grouped[:, part] = 0
        for (row, column), number in zip(itertools.product(range(height), range(width)), numbers):
            grouped[:, part, :, number] = factors[:, column, part, row * inputs : (row + 1) * inputs]
    return result.reshape(groups * outputs, inputs, *whole)


def _by_columns(weight: Array, groups: int) -> Array:
    """Return a weight as (groups, O // groups, C // groups, elements of a column, columns)."""
    outputs, inputs, *heights, width = weight.shape
    return weight.reshape(groups, outputs // groups, inputs, math.prod(heights), width)


def _parts(count: int, size: int) -> Iterator[slice]:
    step = max(1, CACHE // max(size, 1))
    return (slice(start, start + step) for start in range(0, count, step))
