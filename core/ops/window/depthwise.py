"""Products of convolution with one channel in each group, in steps of one pixel.

A product of a row of weights with patches is no work for BLAS; what takes the time is copying the patches. So runs are
copied (see ``long_rows``).
"""

from __future__ import annotations

import math

import numpy as np

from ...dtypes import wide_type
from ...types import Array
from .long_rows import inner, rows_of, runs_of
from .window import Window


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
    room, length = rows_of(window)
    result = np.empty((len(image) * len(weight), math.prod(room)), dtype, like=image)
    rows = np.tile(weight.reshape(len(weight), -1).astype(dtype, copy=False), (len(image), 1))
    for part, runs in runs_of(image, window, length, dtype):
        np.matmul(rows[part, np.newaxis], runs, out=result[part, np.newaxis, :length])
    values = result.reshape(len(image), len(weight), *room)[inner(window)]
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
    room, length = rows_of(window)
    rows = np.zeros((count, channels, *room), dtype, like=output)
    rows[inner(window)] = output
    rows = rows.reshape(count * channels, math.prod(room), 1)[:, :length]
    result = np.empty((count * channels, math.prod(window.kernel_size), 1), dtype, like=output)
    for part, runs in runs_of(image, window, length, dtype):
        np.matmul(runs, rows[part], out=result[part])
    total = result.reshape(count, channels * math.prod(window.kernel_size)).sum(axis=0)
    return total.reshape(channels, 1, *window.kernel_size).astype(image.dtype, copy=False)
