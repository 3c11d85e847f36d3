"""Convolution of arrays and its two transposes, by which every derivative of a convolution is again one of the three.

Patches are gathered for a few samples at a time, as many as fit a core's cache, into one buffer, and multiplied by BLAS.
Measured beside batch-innermost and channel-innermost layouts: those gather faster, but bringing the result back to
(N, C, ...) order, which ``view`` relies on, costs more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from ..types import Array, DType
from .sliding import Sliding, cropped, padded, windows

CACHE = 1 << 19  # bytes of patches that are gathered at once


def convolve(x: Array, weight: Array, sliding: Sliding, groups: int, bias: Array | None = None) -> Array:
    """Shape (N, O, *stops), from ``x`` of shape (N, C, *lengths) and ``weight`` of shape (O, C // groups, *kernel)."""
    wide = _wide(x.dtype)
    matrix = _matrices(weight, groups).astype(wide, copy=False)
    result = np.empty((len(x), groups, matrix.shape[1], math.prod(sliding.stops)), wide)
    for part, patches in _patches(x, sliding, groups, wide):
        np.matmul(matrix, patches, out=result[part])
        if bias is not None:  # here, while the part is in the cache
            result[part] += bias.reshape(groups, -1, 1)
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
    back = _sliding_back(sliding) if len(weight) == groups else None
    if back is not None:
        # One output in each group: its patches are few, and to gather them is several times as fast as to add up.
        return convolve(grad, _turned(weight, groups), back, groups)
    wide = _wide(grad.dtype)
    matrix = _matrices(weight, groups).swapaxes(-1, -2).astype(wide, copy=False)
    shape = (len(grad), weight.shape[1] * groups)
    flat = _flat_lengths(sliding)
    if flat is None:
        result = np.zeros((*shape, *sliding.padded_lengths()), wide)
        for part, seen in _products(grad.astype(wide, copy=False), matrix, groups, None):
            target = result[part]
            seen = seen.reshape(*target.shape[:2], -1, *sliding.stops)
            for number, place in enumerate(sliding.places()):
                target[place] += seen[:, :, number]
    else:
        result = np.zeros((*shape, math.prod(sliding.padded_lengths())), wide)
        offsets, length = _flat_offsets(sliding)
        for part, seen in _products(grad.astype(wide, copy=False), matrix, groups, flat):
            target = result[part]
            seen = seen.reshape(*target.shape[:2], len(offsets), -1)
            for number, offset in enumerate(offsets):
                target[..., offset : offset + length] += seen[:, :, number, :length]
        result = result.reshape(*shape, *sliding.padded_lengths())
    return cropped(result, sliding).astype(grad.dtype, copy=False)


def _sliding_back(sliding: Sliding) -> Sliding | None:
    """How the window slides over the result to give the input's shape; ``None`` where it left out some of the input."""
    spaces = tuple(d * (k - 1) - before for d, k, before in zip(sliding.dilation, sliding.kernel, sliding.before))
    if any(step != 1 for step in sliding.stride) or min(spaces) < 0:
        return None
    return Sliding(sliding.stops, sliding.lengths, sliding.kernel, sliding.stride, sliding.dilation, spaces)


def _turned(weight: Array, groups: int) -> Array:
    """The weight that leads back: turned round, inputs and outputs exchanged in each group."""
    outputs, inputs, *kernel = weight.shape
    exchanged = (
        np.flip(weight, tuple(range(2, weight.ndim))).reshape(groups, outputs // groups, inputs, *kernel).swapaxes(1, 2)
    )
    return exchanged.reshape(groups * inputs, outputs // groups, *kernel)


def _flat_lengths(sliding: Sliding) -> tuple[int, ...] | None:
    """If the window moves by single pixels: the stops, with room behind each row so that rows are as long as the image's.

    Then what one of the window's pixels sees is one run of the flattened image, and adding it up takes one long loop and not
    one for each row; the room holds zeros. ``None`` if that does not apply or the zeros would be more work than it saves.
    """
    lengths = (*sliding.stops[:1], *sliding.padded_lengths()[1:])
    if any(step != 1 for step in sliding.stride) or 2 * math.prod(lengths) > 3 * math.prod(sliding.stops):
        return None
    return lengths


def _flat_offsets(sliding: Sliding) -> tuple[list[int], int]:
    """Where the run of each of the window's pixels begins in the flattened image, and how long it is."""
    padded = sliding.padded_lengths()
    steps = [math.prod(padded[axis + 1 :]) for axis in range(len(padded))]
    ranges = (range(0, k * d * step, d * step) for k, d, step in zip(sliding.kernel, sliding.dilation, steps))
    length = sum((stops - 1) * step for stops, step in zip(sliding.stops, steps)) + 1
    return [sum(starts) for starts in itertools.product(*ranges)], length


def _products(
    grad: Array, matrix: Array, groups: int, lengths: tuple[int, ...] | None
) -> Iterator[tuple[slice, Array]]:
    """Slices of the batch, with what their gradients give to each pixel of each window, in a buffer used again."""
    count, outputs, *stops = grad.shape
    size = math.prod(stops if lengths is None else lengths)
    parts = list(_parts(count, matrix.shape[0] * matrix.shape[1] * size * grad.itemsize))
    largest = parts[0].stop if parts else 0
    buffer = np.empty((largest, groups, matrix.shape[1], size), grad.dtype)
    roomy = None if lengths is None else np.zeros((largest, outputs, *lengths), grad.dtype)
    for part in parts:
        number = part.stop - part.start
        if roomy is None:
            rows = grad[part]
        else:
            place = (slice(number), slice(None), *map(slice, stops))
            roomy[place] = grad[part]
            rows = roomy[:number]
        yield part, np.matmul(matrix, rows.reshape(number, groups, outputs // groups, size), out=buffer[:number])


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
