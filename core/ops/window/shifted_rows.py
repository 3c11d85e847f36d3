"""The products of convolution on two-dimensional images by rows that are copied once for each column of the window.

Copying patches writes each pixel once for each element of the window. Here the rows of some samples are copied once for each
column, shifted by it, as an array (rows, columns, channels, samples, stops of a row). Elements of the window below one another
see rows that lie behind one another, so what a row of stops sees is a view: a matrix (elements * channels, samples * stops).
Of a 3x3 window that is a third of the copies. The price is that results have to be brought into the order of images.

Every second row of stops of a window whose rows are two apart sees every second row of the image: such windows are as many
windows without gaps between their rows (``phases``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...array_like import strided
from ...types import Array, DType
from .image_rows import columns
from .window import Window

CACHE = 1 << 19  # bytes of rows that are copied at once
# OpenBLAS does not copy matrices first that have at most so many products, which is a third faster. A row of stops, of all
# samples, should have so many; where that is more products, fewer copies do not pay for the many small matrices.
SMALL, SHORT = 1_000_000, 96
ROWS = 4  # of stops in each phase, at least


class Part(NamedTuple):
    """Samples and rows of stops that are multiplied at once."""

    samples: slice
    stops: slice


class Phase(NamedTuple):
    """Rows of an image and of stops, the window's gap apart, and the window over them, which has none."""

    rows: slice
    stops: slice
    window: Window


def phases(window: Window) -> Iterator[Phase]:
    """Yield windows, with no gaps between their rows, that see and make together what this one does."""
    (gap, across), (before, left) = window.dilation, window.padding
    (height, width), (lines, stops) = window.input_size, window.output_size
    for stop in range(min(gap, lines)):
        first = (stop - before) % gap  # row of the image
        phase = window._replace(
            input_size=(len(range(first, height, gap)), width),
            output_size=(len(range(stop, lines, gap)), stops),
            dilation=(1, across),
            padding=((first - stop + before) // gap, left),
        )
        yield Phase(slice(first, None, gap), slice(stop, None, gap), phase)


def fits(window: Window, inputs: int, outputs: int, groups: int) -> bool:
    """Return whether convolution by shifted rows copies less than convolution by patches.

    Args:
        window: slides over the image.
        inputs, outputs: numbers of channels.
        groups: number of groups of channels.
    """
    if len(window.kernel_size) != 2 or groups != 1 or not math.prod(window.output_size):
        return False
    if window.dilation[0] != 1 and (window.stride[0] != 1 or window.output_size[0] < ROWS * window.dilation[0]):
        return False
    height, width = window.kernel_size
    if inputs * height * width * outputs * SHORT > SMALL:
        return False
    return 2 * inputs * width * (height - 1) > 3 * outputs  # patches that are not copied; results that are


def convolve(image: Array, weight: Array, window: Window, bias: Array | None, dtype: DType) -> Array:
    """Return the output: the weight times the patch at each stop, plus the bias.

    Args:
        image: shape (N, C, *input_size).
        weight: shape (O, C, *kernel_size).
        window: slides over the image.
        bias: shape (O,).
        dtype: of the result.
    """
    factors = _turned(weight, (0, 2, 3, 1), dtype).reshape(len(weight), math.prod(weight.shape[1:]))
    result = np.empty((len(image), len(weight), *window.output_size), dtype, like=image)
    for phase in phases(window):
        _convolve(image[:, :, phase.rows], factors, phase.window, bias, result[:, :, phase.stops])
    return result


def _convolve(image: Array, factors: Array, window: Window, bias: Array | None, result: Array) -> None:
    dtype = factors.dtype
    products: Any = None
    for part, matrices in _matrices(image, len(factors), window, dtype):
        if products is None:
            products = np.empty((len(matrices), len(factors), matrices.shape[-1]), dtype, like=image)
        out = products[: len(matrices), :, : matrices.shape[-1]]
        np.matmul(factors, matrices, out=out)
        if bias is not None:  # here, because the products are still in the cache
            np.add(out, bias.reshape(-1, 1), out=out)
        given = result[part.samples, :, part.stops].transpose(2, 1, 0, 3)
        given[...] = out.reshape(given.shape)


def convolve_weight(output: Array, image: Array, window: Window, dtype: DType) -> Array:
    """Return the weight: the sum over all stops of the output times the patch there.

    Args:
        output: shape (N, O, *output_size).
        image: shape (N, C, *input_size).
        window: slides over the image.
        dtype: of the result.
    """
    inputs, outputs = image.shape[1], output.shape[1]
    result: Any = None
    for phase in phases(window):
        products = _weight_products(output[:, :, phase.stops], image[:, :, phase.rows], phase.window, dtype)
        for product in products:
            result = product if result is None else np.add(result, product, out=result)
    if result is None:
        result = np.zeros((math.prod(window.kernel_size) * inputs, outputs), dtype, like=image)
    return _turned(result.reshape(*window.kernel_size, inputs, outputs), (3, 2, 0, 1), dtype)


def _weight_products(output: Array, image: Array, window: Window, dtype: DType) -> Iterator[Array]:
    outputs = output.shape[1]
    rows: Any = None
    for part, matrices in _matrices(image, outputs, window, dtype):
        seen = output[part.samples, :, part.stops].transpose(2, 0, 3, 1)
        if rows is None:
            rows = np.empty(seen.shape, dtype, like=output)
        given = rows[: len(seen), : seen.shape[1]]
        given[...] = seen
        yield np.matmul(matrices, given.reshape(len(given), given.shape[1] * given.shape[2], outputs)).sum(axis=0)


def _turned(array: Array, order: tuple[int, ...], dtype: DType) -> Array:
    seen = array.transpose(order)
    result = np.empty(seen.shape, dtype, like=array)
    result[...] = seen
    return result


def _matrices(image: Array, outputs: int, window: Window, dtype: DType) -> Iterator[tuple[Part, Array]]:
    """Yield parts with what each row of stops sees: (rows, kernel * C, samples * stops), in a buffer that is reused."""
    inputs, (height, width), (step, _) = image.shape[1], window.kernel_size, window.stride
    count, lines = _sizes(len(image), inputs, outputs, window, dtype)
    shape = ((lines - 1) * step + height, width, inputs, count, window.output_size[1])
    buffer = np.zeros(shape, dtype, like=image)
    long = count * shape[-1]
    line = width * inputs * long * dtype.itemsize
    sizes = (lines, height * width * inputs, long)
    matrices = strided(buffer, sizes, (step * line, long * dtype.itemsize, dtype.itemsize))
    for part in _parts(len(image), count, window.output_size[0], lines):
        samples, stops = image[part.samples], part.stops.stop - part.stops.start
        _copy(samples, buffer, window, part.stops, lines < window.output_size[0])
        yield part, matrices[:stops, :, : len(samples) * shape[-1]]


def _copy(image: Array, buffer: Array, window: Window, stops: slice, bands: bool) -> None:
    """Write the rows that some rows of stops see to the buffer; ``bands``: it may hold others where now is padding."""
    (before, _), (step, pace), height = window.padding, window.stride, window.kernel_size[0]
    start, end = stops.start * step - before, (stops.stop - 1) * step + height - before
    first, last = min(max(start, 0), end), max(min(end, window.input_size[0]), start)
    if bands:
        buffer[: first - start], buffer[last - start : end - start] = 0, 0
    if first >= last:
        return
    seen = image[:, :, first:last].transpose(2, 1, 0, 3)
    for column in columns(window):
        pixel = column.pixel * pace + column.phase
        target = buffer[first - start : last - start, column.number, :, : len(image)]
        target[..., column.stop : column.stop + column.stops] = seen[
            ..., pixel : pixel + (column.stops - 1) * pace + 1 : pace
        ]


def _sizes(count: int, inputs: int, outputs: int, window: Window, dtype: DType) -> tuple[int, int]:
    """Return the numbers of samples and of rows of stops of a part."""
    (height, width), (lines, stops), step = window.kernel_size, window.output_size, window.stride[0]
    line = width * inputs * stops * dtype.itemsize
    samples = max(CACHE // (((lines - 1) * step + height) * line), -(-SHORT // stops))
    samples = max(1, min(count, samples, SMALL // (outputs * height * width * inputs * stops)))
    rows = max(1, (2 * CACHE // (samples * line) - height) // step + 1)
    return samples, -(-lines // -(-lines // rows))


def _parts(count: int, samples: int, lines: int, rows: int) -> Iterator[Part]:
    for start in range(0, count, samples):
        for line in range(0, lines, rows):
            yield Part(slice(start, min(start + samples, count)), slice(line, min(line + rows, lines)))
