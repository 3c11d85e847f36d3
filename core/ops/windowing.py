"""Choosing one element of each window, and summing windows, on arrays; each with its transpose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..types import Array
from .index.array_masking import chosen as choose
from .sliding import Sliding, cropped, padded


def peaks(x: Array, sliding: Sliding) -> Array:
    """The largest element of each window, shape (N, C, *stops)."""
    image = padded(x, sliding, lowest(x))
    first, *others = sliding.places()
    result: Array = image[first].copy()
    for place in others:
        np.maximum(result, image[place], out=result)
    return result


def peak_places(x: Array, top: Array, sliding: Sliding) -> Array:
    """Which element of its window each of ``top`` is: the number of the first one that is equal, from 0.

    Counting how many elements come before it costs a few plain passes; writing numbers through masks costs ten times as
    much.
    """
    image = padded(x, sliding, lowest(x))
    count = math.prod(sliding.kernel)
    result = np.zeros(top.shape, np.int8 if count < 128 else np.int32)
    before = np.ones(top.shape, np.bool_)
    for _, place in zip(range(count - 1), sliding.places()):  # the last one need not be compared
        before &= image[place] != top
        result += before.view(np.int8)
    return result


def pick(x: Array, chosen: Array, sliding: Sliding) -> Array:
    """The element of each window whose number is in ``chosen``, shape (N, C, *stops)."""
    image = padded(x, sliding)
    result = np.zeros(chosen.shape, x.dtype)
    for number, place in enumerate(sliding.places()):
        np.copyto(result, image[place], where=chosen == number)
    return result


def place_back(grad: Array, chosen: Array, sliding: Sliding) -> Array:
    """The transpose of ``pick``: zeros, with each element of ``grad`` added where it was picked."""
    wanted = sliding.padded_lengths()
    shape = (*grad.shape[:2], *wanted)
    if all(
        kernel <= stride and gap == 1 for kernel, stride, gap in zip(sliding.kernel, sliding.stride, sliding.dilation)
    ):
        # No pixel is in two windows, and most often each is in one.
        tiled = all(
            s == k and stops * k == n for s, k, stops, n in zip(sliding.stride, sliding.kernel, sliding.stops, wanted)
        )
        result = np.empty(shape, grad.dtype) if tiled else np.zeros(shape, grad.dtype)
        for number, place in enumerate(sliding.places()):
            choose(chosen == number, grad, out=result[place])
    else:
        result = np.zeros(shape, grad.dtype)
        for number, place in enumerate(sliding.places()):
            result[place] += choose(chosen == number, grad)
    return cropped(result, sliding)


def sum_windows(x: Array, sliding: Sliding) -> Array:
    """The sum of each window, shape (N, C, *stops)."""
    image = padded(x, sliding)
    first, *others = sliding.places()
    result: Array = image[first].copy()
    for place in others:
        result += image[place]
    return result


def share_windows(grad: Array, sliding: Sliding) -> Array:
    """The transpose of ``sum_windows``: each pixel gets the sum of what its windows have."""
    result = np.zeros((*grad.shape[:2], *sliding.padded_lengths()), grad.dtype)
    for place in sliding.places():
        result[place] += grad
    return cropped(result, sliding)


def pixel_numbers(chosen: Array, sliding: Sliding) -> Array:
    """Where in the flattened image the chosen elements are, as ``int64``."""
    within = np.unravel_index(chosen, sliding.kernel)
    result = np.zeros(chosen.shape, np.int64)
    for axis, (offset, length) in enumerate(zip(within, sliding.lengths)):
        shape = [1] * len(sliding.stops)
        shape[axis] = sliding.stops[axis]
        start = (np.arange(sliding.stops[axis]) * sliding.stride[axis] - sliding.before[axis]).reshape(shape)
        # Of a window in which all is -inf, the padding may be chosen: the nearest pixel stands for it.
        result = result * length + np.clip(start + offset * sliding.dilation[axis], 0, max(length - 1, 0))
    return result


def lowest(x: Array) -> Any:
    """The smallest number of the array's dtype: padding that is never the largest."""
    if x.dtype.kind == "b":
        return False
    return np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
