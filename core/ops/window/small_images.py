"""The three products of convolution, arranged for small images; those of ``products`` for all others.

Two rearrangements leave the products themselves as they are:

* Elements of the window that see nothing but padding are cut off. Of a 3x3 window over images of one pixel one element is left.
* Batches of small images are multiplied by rows (``row_products``). Its price is that images are transposed, which is worth it
  where stops are few.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...types import Array, DType
from . import products, row_products, row_weights
from .window import Window

STOPS = 100  # of a small image, at most
WEIGHT_STOPS = 48  # the same for the gradient of a weight, if its products add up fewer numbers than ``LONG``
LONG = 256  # stops of a row, of all samples
PIXEL_STOPS = 4  # the same for windows of one element, whose patches are not copied
BATCH = 8  # samples, at least
CACHE = 1 << 21  # bytes of images that are multiplied at once


def convolve(image: Array, weight: Array, window: Window, groups: int, bias: Array | None = None) -> Array:
    """Return the output, as ``products.convolve`` does.

    Args:
        image, weight: arrays of one dtype.
        window: slides over the image.
        groups: number of groups of channels.
        bias: shape (O,).
    """
    window, kept = _cut(window)
    weight = weight[kept]
    if not _is_small(window, len(image)):
        return products.convolve(image, weight, window, groups, bias)
    return _convolved(image, row_weights.factors(weight, groups), window, groups, bias)


def convolve_image(output: Array, weight: Array, window: Window, groups: int, bias: Array | None = None) -> Array:
    """Return the image, as ``products.convolve_image`` does.

    Args:
        output, weight: arrays of one dtype.
        window: slides over the image.
        groups: number of groups of channels.
        bias: shape (C,).
    """
    window, kept = _cut(window)
    weight = weight[kept]
    if not _is_small(window, len(output)):
        return products.convolve_image(output, weight, window, groups, bias)
    back = products.window_back(window)
    if back is not None:  # products of the rows of the output; those of elements below one another are one
        return _convolved(output, row_weights.factors_back(weight, groups), back, groups, bias)
    shape = (len(output), weight.shape[1] * groups, *window.input_size)
    result, factors = np.empty(shape, output.dtype, like=output), row_weights.factors(weight, groups)
    for part in _parts(shape, output.dtype):
        row_products.convolve_image(output[part], factors, window, groups, bias, result[part])
    return result


def _convolved(image: Array, factors: Array, window: Window, groups: int, bias: Array | None) -> Array:
    shape = (len(image), factors.shape[2] * groups, *window.output_size)
    result = np.empty(shape, image.dtype, like=image)
    for part in _parts(image.shape, image.dtype):
        row_products.convolve(image[part], factors, window, groups, bias, result[part])
    return result


def convolve_weight(output: Array, image: Array, window: Window, groups: int) -> Array:
    """Return the weight, as ``products.convolve_weight`` does.

    Args:
        output, image: arrays of one dtype.
        window: slides over the image.
        groups: number of groups of channels.
    """
    whole = window.kernel_size
    window, kept = _cut(window)
    long = len(image) * window.output_size[-1] >= LONG
    if _is_small(window, len(image), STOPS if long else WEIGHT_STOPS):
        factors = row_weights.new_factors(output, image, window, groups)
        fresh = set(np.ndindex(factors.shape[1], math.prod(window.kernel_size[:-1])))
        for part in _parts(image.shape, image.dtype):
            row_products.convolve_weight(output[part], image[part], window, groups, factors, fresh)
        elements = np.arange(math.prod(whole)).reshape(whole)[kept]
        return row_weights.weight_of(factors, elements, whole, image)
    result = products.convolve_weight(output, image, window, groups)
    if window.kernel_size == whole:
        return result
    padded = np.zeros((*result.shape[:2], *whole), result.dtype, like=result)
    padded[kept] = result
    return padded


@functools.lru_cache(maxsize=256)
def _cut(window: Window) -> tuple[Window, tuple[Any, ...]]:
    """Return the window without elements at its ends that see only padding, and the index of the others in the weight."""
    kept, padding = [], []
    for length, stops, kernel, step, gap, before in zip(*window):
        # Element i is at pixel i * gap - before at the first stop, and (stops - 1) * step further at the last one.
        first = min(max(0, -(((stops - 1) * step - before) // gap)), before // gap, kernel - 1)
        last = min(kernel, max(first + 1, -(-(length + before) // gap)))
        kept.append(slice(first, last))
        padding.append(before - first * gap)
    size = tuple(each.stop - each.start for each in kept)
    return window._replace(kernel_size=size, padding=tuple(padding)), (..., *kept)


def _is_small(window: Window, count: int, most: int = STOPS) -> bool:
    if math.prod(window.kernel_size) == 1:
        most = PIXEL_STOPS
    return count >= BATCH and math.prod(window.output_size) <= most


def _parts(shape: tuple[int, ...], dtype: DType) -> Iterator[slice]:
    """Yield slices of a batch of images of ``shape``."""
    step = max(BATCH, CACHE // max(math.prod(shape[1:]) * dtype.itemsize, 1))
    return (slice(start, start + step) for start in range(0, shape[0], step))
