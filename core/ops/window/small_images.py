"""The three products of convolution, arranged for small images; those of ``products`` for all others.

Two rearrangements leave the products themselves as they are:

* Elements of the window that see nothing but padding are cut off. Of a 3x3 window over images of one pixel one element is left.
* The batch becomes the last dimension of one image. Patches are then copied in runs as long as the batch, and one large product
  replaces one for each sample. Its price is that images are transposed, which is worth it where stops are few.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...types import Array, DType
from . import products
from .window import Window

STOPS = 100  # of a small image; with more of them the copies of patches are long enough
FEW = 8  # of a small image where a patch is a pixel: nothing is copied
BATCH = 8  # samples, at least
CACHE = 1 << 21  # bytes of patches that are copied at once; weights of 2 MB are read again for each part


def convolve(image: Array, weight: Array, window: Window, groups: int, bias: Array | None = None) -> Array:
    """Return the output, as ``products.convolve`` does.

    Args:
        image, weight: arrays of one dtype.
        window: slides over the image.
        groups: number of groups of channels.
        bias: shape (O,).
    """
    window, weight = _cut_weight(weight, window)
    if not _is_small(window, len(image)):
        return products.convolve(image, weight, window, groups, bias)
    result = np.empty((len(image), len(weight), *window.output_size), image.dtype, like=image)
    for part, wide in _parts(window, image.shape, image.dtype):
        result[part] = _samples(products.convolve(_one_image(image[part]), weight[..., None], wide, groups, bias))
    return result


def convolve_image(output: Array, weight: Array, window: Window, groups: int, bias: Array | None = None) -> Array:
    """Return the image, as ``products.convolve_image`` does.

    Args:
        output, weight: arrays of one dtype.
        window: slides over the image.
        groups: number of groups of channels.
        bias: shape (C,).
    """
    window, weight = _cut_weight(weight, window)
    if not _is_small(window, len(output)):
        return products.convolve_image(output, weight, window, groups, bias)
    back = products.window_back(window, weight.shape, groups, len(output))
    if back is not None:
        turned = np.ascontiguousarray(products.weight_back(weight, groups), like=weight)
        return convolve(output, turned, back, groups, bias)
    shape = (len(output), weight.shape[1] * groups, *window.input_size)
    result = np.empty(shape, output.dtype, like=output)
    for part, wide in _parts(window, shape, output.dtype):
        result[part] = _samples(
            products.convolve_image(_one_image(output[part]), weight[..., None], wide, groups, bias)
        )
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
    if _is_small(window, len(image)):
        result: Any = None
        for part, wide in _parts(window, image.shape, image.dtype):
            product = products.convolve_weight(_one_image(output[part]), _one_image(image[part]), wide, groups)[..., 0]
            result = product if result is None else np.add(result, product, out=result)
    else:
        result = products.convolve_weight(output, image, window, groups)
    if window.kernel_size == whole:
        return result
    padded = np.zeros((*result.shape[:2], math.prod(whole)), result.dtype, like=result)
    flat = result.reshape(*result.shape[:2], math.prod(window.kernel_size))
    for place, element in enumerate(_elements(whole, kept)):  # one long loop for each
        padded[..., element] = flat[..., place]
    return padded.reshape(*result.shape[:2], *whole)


def _cut_weight(weight: Array, window: Window) -> tuple[Window, Array]:
    """Return the window as ``_cut`` does, and the elements of the weight that are left."""
    cut, kept = _cut(window)
    if cut.kernel_size == window.kernel_size:
        return cut, weight
    if math.prod(cut.kernel_size) == 1:
        return cut, weight[kept]
    flat = weight.reshape(*weight.shape[:2], math.prod(window.kernel_size))
    taken = np.take(flat, _elements(window.kernel_size, kept), axis=2)  # a third of the time of copying a slice
    return cut, taken.reshape(*weight.shape[:2], *cut.kernel_size)


def _elements(whole: tuple[int, ...], kept: tuple[Any, ...]) -> list[int]:
    """Return the numbers of the elements of the window that are left."""
    numbers: list[int] = np.arange(math.prod(whole)).reshape(whole)[kept].ravel().tolist()
    return numbers


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


def _is_small(window: Window, count: int) -> bool:
    stops = math.prod(window.output_size)
    return count >= BATCH and stops <= (STOPS if math.prod(window.kernel_size) > 1 else FEW)


def _parts(window: Window, shape: tuple[int, ...], dtype: DType) -> Iterator[tuple[slice, Window]]:
    """Yield slices of a batch of images of ``shape``, each with the window over it as one image."""
    count, channels = shape[:2]
    sample = channels * math.prod(window.kernel_size) * math.prod(window.output_size) * dtype.itemsize
    step = max(BATCH, CACHE // max(sample, 1))
    for start in range(0, count, step):
        length = min(step, count - start)
        more = (length, length, 1, 1, 1, 0)
        yield slice(start, start + length), Window(*((*sizes, size) for sizes, size in zip(window, more)))


def _one_image(x: Array) -> Array:
    return np.ascontiguousarray(x.transpose(*range(1, x.ndim), 0), like=x)[np.newaxis]


def _samples(x: Array) -> Array:
    return x[0].transpose(x.ndim - 2, *range(x.ndim - 2))
