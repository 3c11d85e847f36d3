"""Convolution of arrays and its two transposes, by which every derivative of a convolution is again one of the three.

Patches are gathered for a few samples at a time, as many as fit a core's cache, into one buffer, and multiplied by BLAS.
Measured beside batch-innermost and channel-innermost layouts: those gather faster, but bringing the result back to
(N, C, ...) order, which ``view`` relies on, costs more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..types import Array, DType
from .sliding import Sliding, cropped, padded, windows

CACHE = 1 << 20  # bytes of patches that are gathered at once


def convolve(x: Array, weight: Array, sliding: Sliding, groups: int) -> Array:
    """Shape (N, O, *stops), from ``x`` of shape (N, C, *lengths) and ``weight`` of shape (O, C // groups, *kernel)."""
    wide = _wide(x.dtype)
    matrix = _matrices(weight, groups).astype(wide, copy=False)
    result = np.empty((len(x), groups, matrix.shape[1], math.prod(sliding.stops)), wide)
    for part, patches in _patches(x, sliding, groups, wide):
        np.matmul(matrix, patches, out=result[part])
    return result.reshape(len(x), len(weight), *sliding.stops).astype(x.dtype, copy=False)


def convolve_weight(grad: Array, x: Array, sliding: Sliding, groups: int) -> Array:
    """The gradient of the weight, from that of the result and the input."""
    wide = _wide(x.dtype)
    rows = grad.reshape(len(x), groups, grad.shape[1] // groups, math.prod(sliding.stops)).astype(wide, copy=False)
    depth = x.shape[1] // groups * math.prod(sliding.kernel)
    result = np.zeros((groups, rows.shape[2], depth), wide)
    for part, patches in _patches(x, sliding, groups, wide):
        result += np.matmul(rows[part], patches.swapaxes(-1, -2)).sum(axis=0)
    return result.reshape(grad.shape[1], x.shape[1] // groups, *sliding.kernel).astype(x.dtype, copy=False)


def convolve_input(grad: Array, weight: Array, sliding: Sliding, groups: int) -> Array:
    """The gradient of the input, from that of the result and the weight: the transposed convolution."""
    wide = _wide(grad.dtype)
    count, size = len(grad), math.prod(sliding.stops)
    channels = weight.shape[1] * groups
    rows = grad.reshape(count, groups, grad.shape[1] // groups, size).astype(wide, copy=False)
    matrix = _matrices(weight, groups).swapaxes(-1, -2).astype(wide, copy=False)
    result = np.zeros((count, channels, *sliding.padded_lengths()), wide)
    for part in _parts(count, matrix.shape[0] * matrix.shape[1] * size * wide.itemsize):
        target = result[part]
        seen = np.matmul(matrix, rows[part])
        seen = seen.reshape(len(target), channels, math.prod(sliding.kernel), *sliding.stops)
        for number, place in enumerate(sliding.places()):
            target[place] += seen[:, :, number]
    return cropped(result, sliding).astype(grad.dtype, copy=False)


def _patches(x: Array, sliding: Sliding, groups: int, dtype: DType) -> Iterator[tuple[slice, Array]]:
    """Slices of the batch with the patches of their samples, shape (n, groups, depth, stops), in a buffer used again."""
    count, channels = x.shape[:2]
    size = math.prod(sliding.stops)
    shape = (groups, channels // groups * math.prod(sliding.kernel), size)
    pixels = math.prod(sliding.kernel) == 1 and sliding.stops == sliding.lengths and not any(sliding.before)
    if pixels and x.dtype == dtype:  # every pixel is its own patch
        yield slice(None), x.reshape(count, *shape)
        return
    view = windows(padded(x, sliding), sliding)
    parts = list(_parts(count, math.prod(shape) * dtype.itemsize))
    buffer = np.empty((parts[0].stop if parts else 0, *view.shape[1:]), dtype)
    for part in parts:
        patches = buffer[: part.stop - part.start]
        patches[...] = view[part]
        yield part, patches.reshape(len(patches), *shape)


def _matrices(weight: Array, groups: int) -> Array:
    return weight.reshape(groups, len(weight) // groups, math.prod(weight.shape[1:]))


def _parts(count: int, sample: int) -> Iterator[slice]:
    step = max(1, CACHE // max(sample, 1))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def _wide(dtype: DType) -> DType:
    # NumPy multiplies half-precision matrices element by element, and adds them up in half precision.
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32)
