"""Window that slides over an image: where it stops, the pixels that each of its elements covers, and sums over them.

An image is an array of shape (N, C, *input_size) with any number of spatial dimensions. Each element of the window covers
one strided slice of the padded image: one pixel for each stop. So a map over a window is a loop over the window's elements
with one large step each, and its adjoint (``overlap_add``) adds to the same slices. A loop over the stops would take many
small steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...array_like import strided
from ...dtypes import wide, wide_type
from ...types import Array, DType

Ints = int | Sequence[int]


class Window(NamedTuple):
    """Sizes and steps of a window, one number for each spatial dimension.

    Attributes:
        input_size: the lengths of the image.
        output_size: the number of stops.
        kernel_size: the number of the window's elements.
        stride: the step from one stop to the next.
        dilation: the step from one element of the window to the next.
        padding: the elements before the image; those behind it are as many as the last stop needs.
    """

    input_size: tuple[int, ...]
    output_size: tuple[int, ...]
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]

    def padded_size(self) -> tuple[int, ...]:
        """Return the lengths of the image with its padding."""
        return tuple(
            max(padding + length, (stops - 1) * stride + dilation * (kernel - 1) + 1)
            for length, stops, kernel, stride, dilation, padding in zip(*self)
        )

    def image(self) -> tuple[Any, ...]:
        """Return the index of the image in the padded image."""
        return (..., *(slice(start, start + length) for start, length in zip(self.padding, self.input_size)))

    def axes(self) -> list[list[tuple[Any, ...]]]:
        """Return for each dimension, and each element of the window there, the index of its pixels in that dimension."""
        return [
            [
                (slice(None),) * axis + (slice(start, start + (stops - 1) * stride + 1, stride),)
                for start in range(0, kernel * dilation, dilation)
            ]
            for axis, (stops, kernel, stride, dilation) in enumerate(
                zip(self.output_size, self.kernel_size, self.stride, self.dilation), 2
            )
        ]

    def slices(self) -> Iterator[tuple[Any, ...]]:
        """Yield for each element of the window, in row-major order, the index of its pixels in the padded image."""
        for starts in itertools.product(*(range(0, k * d, d) for k, d in zip(self.kernel_size, self.dilation))):
            yield (
                ...,
                *(
                    slice(start, start + (stops - 1) * stride + 1, stride)
                    for start, stops, stride in zip(starts, self.output_size, self.stride)
                ),
            )


def padded(x: Array, window: Window, fill: Any = 0) -> Array:
    """Return the image with its padding; without padding, the image itself.

    Args:
        x: shape (N, C, *input_size).
        window: slides over it.
        fill: value of the padding.
    """
    size = window.padded_size()
    if size == window.input_size:
        return x
    result = np.full((*x.shape[:2], *size), fill, x.dtype, like=x)
    result[window.image()] = x
    return result


def cropped(x: Array, window: Window) -> Array:
    """Return the padded image without its padding."""
    return x if x.shape[2:] == window.input_size else np.ascontiguousarray(x[window.image()], like=x)


def patches(x: Array, window: Window) -> Array:
    """Return the pixels of a padded image that the window covers: a view, shape (N, C, *kernel_size, *output_size)."""
    steps = x.strides[2:]
    within = [step * dilation for step, dilation in zip(steps, window.dilation)]
    between = [step * stride for step, stride in zip(steps, window.stride)]
    shape = (*x.shape[:2], *window.kernel_size, *window.output_size)
    view: Array = strided(x, shape, (*x.strides[:2], *within, *between))
    return view


def reduce_window(ufunc: np.ufunc, x: Array, window: Window, fill: Any = 0) -> Array:
    """Return the pixels that the window covers at each stop, reduced by a function.

    Args:
        ufunc: a function of NumPy of two arguments, like ``np.add``.
        x: shape (N, C, *input_size).
        window: window that slides over ``x``.
        fill: value of the padding.

    Returns:
        Shape (N, C, *output_size).
    """
    result = padded(wide(x), window, fill)
    for along in window.axes():  # one dimension after the other: the sum of the lengths instead of their product
        image, first = result, result[along[0]]
        if len(along) == 1:
            result = first.copy()
            continue
        result = np.empty(first.shape, image.dtype, like=image)
        ufunc(first, image[along[1]], out=result)
        for index in along[2:]:
            ufunc(result, image[index], out=result)
    return result.astype(x.dtype, copy=False)


def spread(x: Array, window: Window) -> Array:
    """Return an image of the sums of the stops that cover each pixel: the adjoint of ``reduce_window`` with ``np.add``.

    Args:
        x: shape (N, C, *output_size).
        window: window that slides over the result.
    """
    dtype, x = x.dtype, wide(x)
    size = (*x.shape[:2], *window.padded_size())
    for axis, along in reversed(list(enumerate(window.axes(), 2))):
        result = np.zeros((*x.shape[:axis], size[axis], *x.shape[axis + 1 :]), x.dtype, like=x)
        for index in along:
            result[index] += x
        x = result
    return cropped(x, window).astype(dtype, copy=False)


def overlap_add(parts: Iterable[Array], shape: tuple[int, ...], dtype: DType, window: Window) -> Array:
    """Return an image of the sums of values for each pixel: the adjoint of ``Window.slices``.

    Args:
        parts: for each element of the window, in row-major order, its values, shape (N, C, *output_size).
        shape: a shape that begins with N and C.
        dtype: dtype of the result.
        window: window that slides over the result.

    Returns:
        Shape (N, C, *input_size).
    """
    result: Any = None
    for index, part in zip(window.slices(), parts):
        if result is None:
            result = np.zeros((*shape[:2], *window.padded_size()), wide_type(dtype), like=part)
        result[index] += part
    return cropped(result, window).astype(dtype, copy=False)
