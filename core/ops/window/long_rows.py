"""Convolution with an output whose rows are as long as the image's, in steps of one pixel.

Then the pixels that an element of the window covers are one run of the flattened image, which is copied quickly; of patches
each row is copied by itself. The few numbers between the rows of the output are cut off in the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...array_like import strided
from ...types import Array, DType
from .window import Window, padded

CACHE = 1 << 20  # bytes of runs that are copied at once
_PRODUCTS = 16  # with the number that is cut off for each that is left, these take as long as copying rows


def fits(window: Window, inputs: int, outputs: int, groups: int) -> bool:
    """Return whether copying runs is faster than copying patches, for volumes and so many channels.

    Products with patches are faster for the gradient of the weight.
    """
    stops = math.prod(window.output_size)
    usual = groups == 1 and len(window.kernel_size) == 3 and all(step == 1 for step in window.stride)
    if not usual or not stops or not inputs:
        return False
    return (rows_of(window)[1] - stops) * outputs < _PRODUCTS * stops


def convolve(image: Array, weight: Array, window: Window, bias: Array | None, dtype: DType) -> Array:
    """Return the output: the weight times the patch at each stop, plus the bias.

    Args:
        image: shape (N, C, *input_size).
        weight: shape (O, C, *kernel_size).
        window: slides over the image.
        bias: shape (O,).
        dtype: of the result.
    """
    room, length = rows_of(window)
    factors = weight.reshape(len(weight), math.prod(weight.shape[1:])).astype(dtype, copy=False)
    result = np.empty((len(image), len(weight), math.prod(room)), dtype, like=image)
    for samples, columns in _columns(image, window, length, dtype):
        np.matmul(factors, columns, out=result[samples, :, :length])
    values = result.reshape(len(image), len(weight), *room)[inner(window)]
    if bias is not None:
        values = values + bias.reshape(-1, *(1,) * len(room))
    return np.ascontiguousarray(values, like=values)


def _columns(image: Array, window: Window, length: int, dtype: DType) -> Iterator[tuple[slice, Array]]:
    channels = image.shape[1]
    for part, runs in runs_of(image, window, length, dtype, channels):
        samples = slice(part.start // channels, part.stop // channels)
        yield samples, runs.reshape(len(runs) // channels, channels * runs.shape[1], length)


def inner(window: Window) -> Any:
    """Return the index of the output in an output with longer rows."""
    return (..., *map(slice, window.output_size))


def rows_of(window: Window) -> tuple[tuple[int, ...], int]:
    """Return the lengths of an output with rows as long as the padded image's, and the length of a run: to its last stop."""
    room = (*window.output_size[:1], *window.padded_size()[1:])
    steps = (math.prod(room[axis + 1 :]) for axis in range(len(room)))
    return room, sum((stops - 1) * step for stops, step in zip(window.output_size, steps)) + 1


def runs_of(
    image: Array, window: Window, length: int, dtype: DType, together: int = 1
) -> Iterator[tuple[slice, Array]]:
    """Yield slices of the planes with their runs, shape (n, elements of the window, length), in a buffer that is reused.

    Args:
        image: shape (N, C, *input_size).
        window: slides over the image, in steps of one pixel.
        length: of a run.
        dtype: of the runs.
        together: the number of planes in a slice is a multiple of this.
    """
    whole = np.ascontiguousarray(padded(image, window), like=image)
    planes = whole.reshape(-1, math.prod(whole.shape[2:]))
    gaps = [step * gap for step, gap in zip(whole.strides[2:], window.dilation)]
    shape = (len(planes), *window.kernel_size, length)
    seen = strided(planes, shape, (planes.strides[0], *gaps, whole.itemsize))
    number = together * max(1, CACHE // (together * math.prod(shape[1:]) * dtype.itemsize))
    buffer = np.empty((min(number, len(planes)), *shape[1:]), dtype, like=image)
    for start in range(0, len(planes), number):
        part = slice(start, min(start + number, len(planes)))
        runs = buffer[: part.stop - start]
        runs[...] = seen[part]
        yield part, runs.reshape(len(runs), -1, length)
