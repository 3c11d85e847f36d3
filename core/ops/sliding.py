"""A window that slides over an image: where it stops, what it sees there, and adding up what overlapping stops give back.

Convolution, pooling and ``unfold`` are made of this. Images are arrays of shape (N, C, *lengths), of any number of
dimensions; what is seen has shape (N, C, *kernel, *stops).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..types import Array

Ints = int | Sequence[int]


class Sliding(NamedTuple):
    """How a window slides, with one number for each spatial dimension.

    Attributes:
        lengths: of the image.
        stops: how many positions the window takes.
        kernel: the window's length.
        stride: from one stop to the next.
        dilation: from one of the window's elements to the next.
        before: how many elements of padding the first stop begins before the image; what is needed behind it follows.
    """

    lengths: tuple[int, ...]
    stops: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]

    def padded_lengths(self) -> tuple[int, ...]:
        """The lengths of the image with the padding that the stops reach."""
        return tuple(
            max(before + length, (stops - 1) * stride + dilation * (kernel - 1) + 1)
            for length, stops, kernel, stride, dilation, before in zip(*self)
        )

    def places(self) -> Iterator[tuple[Any, ...]]:
        """For each element of the window, in row-major order: the index into the padded image of what it sees."""
        starts = itertools.product(*(range(0, k * d, d) for k, d in zip(self.kernel, self.dilation)))
        for start in starts:
            yield (
                ...,
                *(
                    slice(begin, begin + (stops - 1) * stride + 1, stride)
                    for begin, stops, stride in zip(start, self.stops, self.stride)
                ),
            )


def padded(x: Array, sliding: Sliding, fill: Any = 0) -> Array:
    """The image with its padding; itself, if there is none."""
    wanted = sliding.padded_lengths()
    if wanted == sliding.lengths:
        return x
    result = np.full((*x.shape[:2], *wanted), fill, x.dtype)
    result[inner(sliding)] = x
    return result


def inner(sliding: Sliding) -> tuple[Any, ...]:
    """The index of the image in the padded one."""
    return (..., *(slice(before, before + length) for before, length in zip(sliding.before, sliding.lengths)))


def cropped(image: Array, sliding: Sliding) -> Array:
    """The image without its padding."""
    return image if image.shape[2:] == sliding.lengths else np.ascontiguousarray(image[inner(sliding)])


def windows(x: Array, sliding: Sliding) -> Array:
    """What the window sees of a padded image at all stops: a view, shape (N, C, *kernel, *stops)."""
    steps = x.strides[2:]
    within = [step * dilation for step, dilation in zip(steps, sliding.dilation)]
    between = [step * stride for step, stride in zip(steps, sliding.stride)]
    shape = (*x.shape[:2], *sliding.kernel, *sliding.stops)
    return as_strided(x, shape, (*x.strides[:2], *within, *between), writeable=False)


def gathered(x: Array, sliding: Sliding) -> Array:
    """What the window sees of an image, as an array of its own."""
    return np.ascontiguousarray(windows(padded(x, sliding), sliding))


def spread(seen: Array, sliding: Sliding) -> Array:
    """The transpose of ``gathered``: each pixel gets the sum of what the windows have for it.

    A loop over the elements of the window, with one large addition each; a loop over stops would be many small ones.
    """
    result = np.zeros((*seen.shape[:2], *sliding.padded_lengths()), seen.dtype)
    flat = seen.reshape((*seen.shape[:2], math.prod(sliding.kernel), *sliding.stops))
    for number, place in enumerate(sliding.places()):
        result[place] += flat[:, :, number]
    return cropped(result, sliding)


def per_dim(name: str, value: Any, dims: int) -> tuple[int, ...]:
    """``value`` as one integer for each of ``dims`` dimensions.

    Raises:
        ValueError: not as many are given.
        TypeError: not integers.
    """
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims
    if len(given) == 1:
        given *= dims
    if len(given) != dims:
        raise ValueError(f"{name} must be an integer or {dims} of them, and you gave {value}")
    if not all(isinstance(number, (int, np.integer)) and not isinstance(number, bool) for number in given):
        raise TypeError(f"{name} must be an integer or {dims} of them, and you gave {value!r}")
    return tuple(int(number) for number in given)


def at_least(low: int, **given: tuple[int, ...]) -> None:
    """Raise if a number of an argument is too small.

    Raises:
        ValueError: it is; the message names the argument.
    """
    for name, numbers in given.items():
        if min(numbers, default=low) < low:
            raise ValueError(f"{name} must be at least {low}, and you gave {numbers}")
