"""Products of convolution with one channel in each group, in steps of one pixel.

A product of a row of weights with patches is no work for BLAS; what takes the time is copying the patches. So the output gets
rows as long as the image's: then the pixels that an element of the window covers are one run of the flattened image, and the
few numbers between the rows of the output are cut off in the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...array_like import strided
from ...dtypes import wide_type
from ...types import Array, DType
from .window import Window, padded

CACHE = 1 << 20  # bytes of runs that are copied at once


def is_depthwise(inputs: int, outputs: int, window: Window, groups: int) -> bool:
    """Return whether these products are for so many channels of the image and the output."""
    return inputs == outputs == groups > 1 and all(step == 1 for step in window.stride)


def convolve(image: Array, weight: Array, window: Window, bias: Array | None = None) -> Array:
    """Return the output, as ``products.convolve`` does.

    Args:
        image, weight: arrays of one dtype.
        window: slides over the image.
        bias: shape (O,).
    """
    dtype = wide_type(image.dtype)
    room, length = _rows(window)
    result = np.empty((len(image) * len(weight), math.prod(room)), dtype, like=image)
    rows = np.tile(weight.reshape(len(weight), -1).astype(dtype, copy=False), (len(image), 1))
    for part, runs in _runs(image, window, length, dtype):
        np.einsum("pk,pkl->pl", rows[part], runs, out=result[part, :length])
    values = result.reshape(len(image), len(weight), *room)[_inner(window)]
    if bias is not None:
        values = values + bias.reshape(-1, *(1,) * len(room))
    return np.ascontiguousarray(values.astype(image.dtype, copy=False), like=values)


def convolve_weight(output: Array, image: Array, window: Window) -> Array:
    """Return the weight, as ``products.convolve_weight`` does.

    Args:
        output, image: arrays of one dtype.
        window: slides over the image.
    """
    dtype = wide_type(image.dtype)
    count, channels = image.shape[:2]
    room, length = _rows(window)
    rows = np.zeros((count, channels, *room), dtype, like=output)
    rows[_inner(window)] = output
    rows = rows.reshape(count * channels, math.prod(room), 1)[:, :length]
    result = np.empty((count * channels, math.prod(window.kernel_size), 1), dtype, like=output)
    for part, runs in _runs(image, window, length, dtype):
        np.matmul(runs, rows[part], out=result[part])
    total = result.reshape(count, channels * math.prod(window.kernel_size)).sum(axis=0)
    return total.reshape(channels, 1, *window.kernel_size).astype(image.dtype, copy=False)


def _inner(window: Window) -> Any:
    """Return the index of the output in an output with longer rows."""
    return (..., *map(slice, window.output_size))


def _rows(window: Window) -> tuple[tuple[int, ...], int]:
    """Return the lengths of an output with rows as long as the padded image's, and the length of a run: to its last stop."""
    room = (*window.output_size[:1], *window.padded_size()[1:])
    steps = (math.prod(room[axis + 1 :]) for axis in range(len(room)))
    return room, sum((stops - 1) * step for stops, step in zip(window.output_size, steps)) + 1


def _runs(image: Array, window: Window, length: int, dtype: DType) -> Iterator[tuple[slice, Array]]:
    """Yield slices of the planes with their runs, shape (n, elements of the window, length), in a buffer that is reused."""
    whole = np.ascontiguousarray(padded(image, window), like=image)
    planes = whole.reshape(-1, math.prod(whole.shape[2:]))
    gaps = [step * gap for step, gap in zip(whole.strides[2:], window.dilation)]
    shape = (len(planes), *window.kernel_size, length)
    seen = strided(planes, shape, (planes.strides[0], *gaps, whole.itemsize))
    number = max(1, CACHE // (math.prod(shape[1:]) * dtype.itemsize))
    buffer = np.empty((min(number, len(planes)), *shape[1:]), dtype, like=image)
    for start in range(0, len(planes), number):
        part = slice(start, min(start + number, len(planes)))
        runs = buffer[: part.stop - start]
        runs[...] = seen[part]
        yield part, runs.reshape(len(runs), -1, length)
