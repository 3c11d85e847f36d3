"""The three products of convolution on arrays: of an image, a weight and an output, each from the other two.

``sum(output * convolve(image, weight))`` is linear in all three, and each product is its derivative with respect to one.
The shapes are: image (N, C, *input_size), weight (O, C // groups, *kernel_size), output (N, O, *output_size).

Patches are copied for a few samples at a time, as many as fit a core's cache, into one buffer, and multiplied by BLAS. Layouts
with the batch or the channels innermost were measured too: they copy faster, but bringing the result back to (N, C, ...)
order, which ``view`` relies on, costs more. Where rows of images can be copied instead of patches, ``shifted_rows`` does it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...dtypes import wide_type
from ...types import Array, DType
from . import depthwise, long_rows, shifted_rows
from .window import Window, cropped, padded, patches

# Up to so many images of pixels a stride apart are computed one by one, where there are so many products.
MOST_PHASES, LEAST_PRODUCTS = 4, 1 << 21
CACHE = 1 << 19  # bytes of patches that are copied at once
# Between these numbers of output channels, a weight's gradient is the product of the patches and the transposed output, then
# transposed: BLAS is a quarter faster if the patches are not. With more channels turning the weight costs more than that.
_TURNED = 16, 128


def convolve(image: Array, weight: Array, window: Window, groups: int, bias: Array | None = None) -> Array:
    """Return the output: the weight times the patch at each stop, plus the bias.

    Args:
        image, weight: arrays of one dtype.
        window: slides over the image.
        groups: number of groups of channels.
        bias: shape (O,).
    """
    if depthwise.is_depthwise(image.shape[1], len(weight), window, groups):
        return depthwise.convolve(image, weight, window, bias)
    wide = wide_type(image.dtype)
    if shifted_rows.fits(window, image.shape[1], len(weight), groups):
        return shifted_rows.convolve(image, weight, window, bias, wide).astype(image.dtype, copy=False)
    if long_rows.fits(window, image.shape[1], len(weight), groups):
        return long_rows.convolve(image, weight, window, bias, wide).astype(image.dtype, copy=False)
    matrix = _matrices(weight, groups).astype(wide, copy=False)
    result = np.empty((len(image), groups, matrix.shape[1], math.prod(window.output_size)), wide, like=image)
    for part, columns in _columns(image, window, groups, wide):
        np.matmul(matrix, columns, out=result[part])
        if bias is not None:  # here, because the part is still in the cache
            result[part] += bias.reshape(groups, -1, 1)
    return result.reshape(len(image), len(weight), *window.output_size).astype(image.dtype, copy=False)


def convolve_weight(output: Array, image: Array, window: Window, groups: int) -> Array:
    """Return the weight: the sum over all stops of the output times the patch there.

    Args:
        output, image: arrays of one dtype.
        window: slides over the image.
        groups: number of groups of channels.
    """
    wide = wide_type(image.dtype)
    count, outputs, inputs = len(image), output.shape[1], image.shape[1] // groups
    if depthwise.is_depthwise(image.shape[1], outputs, window, groups):
        return depthwise.convolve_weight(output, image, window)
    if shifted_rows.fits(window, image.shape[1], outputs, groups):
        return shifted_rows.convolve_weight(output, image, window, wide).astype(image.dtype, copy=False)
    rows = output.reshape(count, groups, outputs // groups, math.prod(window.output_size)).astype(wide, copy=False)
    turned = _TURNED[0] < outputs // groups < _TURNED[1]
    result: Any = None
    for part, columns in _columns(image, window, groups, wide):
        if turned:
            product = np.matmul(columns, np.ascontiguousarray(rows[part].swapaxes(-1, -2), like=rows))
        else:
            product = np.matmul(rows[part], columns.swapaxes(-1, -2))
        product = product[0] if len(product) == 1 else product.sum(axis=0)  # a small sum may be as large as its terms
        result = product if result is None else np.add(result, product, out=result)
    if result is None:
        result = np.zeros((groups, outputs // groups, inputs * math.prod(window.kernel_size)), wide, like=image)
    elif turned:
        result = np.ascontiguousarray(result.swapaxes(-1, -2), like=result)
    return result.reshape(outputs, inputs, *window.kernel_size).astype(image.dtype, copy=False)


def convolve_image(output: Array, weight: Array, window: Window, groups: int, bias: Array | None = None) -> Array:
    """Return the image: the sum over all stops of the output times the weight there, plus the bias.

    Args:
        output, weight: arrays of one dtype.
        window: slides over the image.
        groups: number of groups of channels.
        bias: shape (C,).
    """
    back = window_back(window)
    stops = len(output) * math.prod(window.output_size)
    inputs = weight.shape[1] * groups
    by_rows = back is not None and shifted_rows.fits(back, len(weight), inputs, groups)
    if back is not None and (by_rows or len(weight) <= inputs) and stops > 4 * len(weight) // groups:
        # Copying patches of the output is faster than adding products to the image, if it has no more channels than that
        # and turning the weight costs little beside the product.
        result = convolve(output, weight_back(weight, groups), back, groups)
    elif _in_phases(window) and len(weight) <= inputs and stops * weight.size >= LEAST_PRODUCTS:
        result = _phase_by_phase(output, weight, window, groups)
    else:
        result = _added_up(output, weight, window, groups)
    if bias is not None:
        result += bias.reshape(-1, *(1,) * len(window.input_size))
    return result


def _in_phases(window: Window) -> bool:
    """Return whether the pixels that are a stride apart are few images, over each of which a window slides by single pixels."""
    steps = window.stride
    return 1 < math.prod(steps) <= MOST_PHASES and all(1 in each for each in zip(steps, window.dilation))


def _phase_by_phase(output: Array, weight: Array, window: Window, groups: int) -> Array:
    """Return the image, from those of pixels that are a stride apart: each sees elements of the window as far apart."""
    image = np.zeros((len(output), weight.shape[1] * groups, *window.input_size), output.dtype, like=output)
    for first in itertools.product(*map(range, map(min, window.stride, window.kernel_size))):
        moved = [divmod(number - before, step) for number, before, step in zip(first, window.padding, window.stride)]
        where: tuple[Any, ...] = (..., *[slice(pixel, None, step) for (_, pixel), step in zip(moved, window.stride)])
        which: tuple[Any, ...] = (..., *[slice(number, None, step) for number, step in zip(first, window.stride)])
        pixels, elements = image[where], weight[which]
        if pixels.size:
            smaller = window._replace(
                input_size=pixels.shape[2:],
                kernel_size=elements.shape[2:],
                stride=(1,) * len(first),
                padding=tuple(-steps for steps, _ in moved),
            )
            pixels[...] = convolve_image(output, elements, smaller, groups)
    return image


def _columns(image: Array, window: Window, groups: int, dtype: DType) -> Iterator[tuple[slice, Array]]:
    """Yield slices of the batch with their patches, shape (n, groups, depth, stops), in a buffer that is reused."""
    count, channels = image.shape[:2]
    depth = math.prod(window.kernel_size)
    shape = (groups, channels // groups * depth, math.prod(window.output_size))
    if depth == 1 and window.output_size == window.input_size and not any(window.padding) and image.dtype == dtype:
        yield slice(None), image.reshape(count, *shape)  # every pixel is a patch
        return
    seen = patches(padded(image, window), window)
    parts = _parts(count, math.prod(shape) * dtype.itemsize)
    buffer = np.empty((parts[0].stop if parts else 0, *seen.shape[1:]), dtype, like=image)
    for part in parts:
        columns = buffer[: part.stop - part.start]
        columns[...] = seen[part]
        yield part, columns.reshape(len(columns), *shape)


def _added_up(output: Array, weight: Array, window: Window, groups: int) -> Array:
    """Return the image: for each element of the window, add its products to the pixels that it covers."""
    wide = wide_type(output.dtype)
    matrix = _matrices(weight, groups).swapaxes(-1, -2).astype(wide, copy=False)
    image = np.zeros((len(output), weight.shape[1] * groups, *window.padded_size()), wide, like=output)
    target, room, indices, stops = _targets(image, window)
    for part, products in _products(output.astype(wide, copy=False), matrix, groups, room):
        shape = (len(products), image.shape[1])
        given = products.reshape(*shape, len(indices), math.prod(room))[..., : math.prod(stops)]
        for number, index in enumerate(indices):
            target[part][index] += given[:, :, number].reshape(*shape, *stops)
    return cropped(image, window).astype(output.dtype, copy=False)


def _targets(image: Array, window: Window) -> tuple[Array, tuple[int, ...], list[Any], tuple[int, ...]]:
    """Return the part of the padded image that each element of the window adds to.

    If the window moves by single pixels, zeros behind each row of the output make it as long as a row of the image. Then an
    element of the window covers one run of the flattened image, and adding takes one long loop instead of one for each row.
    If the zeros are more work than that saves, the rows stay as they are.

    Returns:
        The image (flattened, for runs), the lengths of the output with the zeros, the index in the image for each element of
        the window, and the lengths of the part.
    """
    size, stops = window.padded_size(), window.output_size
    room = (*stops[:1], *size[1:])
    if any(step != 1 for step in window.stride) or 2 * math.prod(room) > 3 * math.prod(stops):
        return image, stops, list(window.slices()), stops
    steps = [math.prod(size[axis + 1 :]) for axis in range(len(size))]
    starts = (range(0, k * d * step, d * step) for k, d, step in zip(window.kernel_size, window.dilation, steps))
    length = sum((count - 1) * step for count, step in zip(stops, steps)) + 1
    runs = [(..., slice(start, start + length)) for start in map(sum, itertools.product(*starts))]
    return image.reshape(*image.shape[:2], math.prod(size)), room, runs, (length,)


def _products(output: Array, matrix: Array, groups: int, room: tuple[int, ...]) -> Iterator[tuple[slice, Array]]:
    """Yield slices of the batch with the matrix times their output, padded to ``room``, in a buffer that is reused."""
    count, channels, *stops = output.shape
    size = math.prod(room)
    parts = _parts(count, matrix.shape[0] * matrix.shape[1] * size * output.itemsize)
    largest = parts[0].stop if parts else 0
    buffer = np.empty((largest, groups, matrix.shape[1], size), output.dtype, like=output)
    wider = None if room == tuple(stops) else np.zeros((largest, channels, *room), output.dtype, like=output)
    inner: tuple[Any, ...] = (..., *map(slice, stops))
    for part in parts:
        number, rows = part.stop - part.start, output[part]
        if wider is not None:
            wider[:number][inner] = rows
            rows = wider[:number]
        yield part, np.matmul(matrix, rows.reshape(number, groups, channels // groups, size), out=buffer[:number])


def window_back(window: Window) -> Window | None:
    """Return the window that slides over the output and stops at each pixel of the image, or ``None`` if there is none."""
    padding = tuple(d * (k - 1) - p for d, k, p in zip(window.dilation, window.kernel_size, window.padding))
    if any(step != 1 for step in window.stride) or min(padding) < 0:
        return None
    return window._replace(input_size=window.output_size, output_size=window.input_size, padding=padding)


def weight_back(weight: Array, groups: int) -> Array:
    """Return the weight of the window of ``window_back``: flipped, with inputs and outputs exchanged in each group."""
    outputs, inputs, *kernel = weight.shape
    flipped = np.flip(weight, tuple(range(2, weight.ndim))).reshape(groups, outputs // groups, inputs, *kernel)
    return flipped.swapaxes(1, 2).reshape(groups * inputs, outputs // groups, *kernel)


def _matrices(weight: Array, groups: int) -> Array:
    return weight.reshape(groups, len(weight) // groups, math.prod(weight.shape[1:]))


def _parts(count: int, sample: int) -> list[slice]:
    step = max(1, CACHE // max(sample, 1))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]
