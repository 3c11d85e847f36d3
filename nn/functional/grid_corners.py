"""Pixels around positions between them, and their shares: both passes of linear ``grid_sample`` on arrays.

The share of a pixel in a value falls from 1 to 0 within a distance of one pixel, in each dimension. So each position has two
neighbours in each dimension, four corners in an image and eight in a volume. The image gets a frame of zeros, in which
positions outside have all their corners.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import Array, wide, write

PART = 1 << 20  # bytes of shares that are made at once, of one sample at least
MANY = 1 << 11  # pairs of corners in a sample, from which on gradients are added to one plane after the other
_BEFORE, _BEHIND = 2, 2  # pixels of the frame


class _Tables(NamedTuple):
    """Numbers that depend on an image's size; those of each dimension are in the order of a grid, the last one first."""

    last: Array  # cell in each dimension
    steps: Array  # from pixel to pixel in each dimension, with the frame
    corners: Array  # numbers of the corners of the image's first cell
    framed: tuple[int, ...]
    inside: tuple[Any, ...]


@lru_cache(maxsize=64)
def _tables(lengths: tuple[int, ...], dtype: Any) -> _Tables:
    framed = tuple(_BEFORE + length + _BEHIND for length in lengths)
    steps = [math.prod(framed[axis + 1 :]) for axis in range(len(framed))]
    corners = _BEFORE * sum(steps) + reduce(np.add.outer, [np.array([0, step]) for step in steps]).reshape(-1, 1)
    exact = dtype if math.prod(framed) < 1 << 24 else np.float64
    last = np.array(lengths[::-1], dtype).reshape(-1, 1, 1)
    inside: tuple[Any, ...] = (..., *[slice(_BEFORE, -_BEHIND)] * len(lengths))
    return _Tables(last, np.array(steps[::-1], exact), corners, framed, inside)


class Corners:
    """Corners of the cells in which positions are, and the pixels there.

    Shapes: K corners, L positions in a sample.

    Args:
        image: shape (N, C, *lengths).
        grid: x, y (and z) of each position, shape (N, *size, dimensions).
        slopes: pixels by number of the grid, in its last dimension; ``None`` if it has pixels already, counted from the
            centre of the first one.
        corners: whether -1 and 1 are the centres of the outermost pixels instead of their outer edges.
    """

    def __init__(self, image: Array, grid: Array, slopes: Array | None = None, corners: bool = False) -> None:
        self._image, self._grid = image, grid
        self._slopes = None if slopes is None else wide(slopes).reshape(-1, 1, 1)
        count, *size, dims = grid.shape
        points = wide(grid).reshape(count, math.prod(size), dims).transpose(2, 0, 1).copy()
        if self._slopes is not None:
            to_pixels(points, self._slopes, corners)
        self._tables = _tables(image.shape[2:], points.dtype)
        self._place(points)

    def _place(self, points: Array) -> None:
        """Find the cells of positions, shape (dimensions, N, L), and the shares of both ends in each dimension."""
        last = self._tables.last  # beyond it, and before -2, all corners are zeros
        points = np.minimum(np.maximum(points, -_BEFORE, out=points), last, out=points)
        cells = np.floor(points)
        dims, count, length = points.shape
        ends = np.empty((dims, count, 2, length), points.dtype, like=points)
        share = np.subtract(points, cells, out=ends[:, :, 1])
        np.subtract(1, share, out=ends[:, :, 0])
        self._shares = self._by_axis(ends)
        self._weights = reduce(np.multiply, self._shares).reshape(count, 2**dims, length)  # (N, K, L)
        cells = np.fmin(cells, last, out=cells)  # the last one for nan, which so reaches no gradient of the image
        numbers = np.dot(self._tables.steps, cells.reshape(dims, count * length))
        self._cells = numbers.astype(np.int64).reshape(count, 1, length)

    def _by_axis(self, ends: Array) -> list[Array]:
        """Return both ends of each dimension along an axis of its own, to be broadcast: shape (N, 2, 1, L) or (N, 1, 2, L)."""
        dims, count, _, length = ends.shape
        axes = range(dims)
        shapes = [(count, *[2 if each == axis else 1 for each in axes], length) for axis in axes]
        return [ends[dims - 1 - axis].reshape(shape) for axis, shape in enumerate(shapes)]

    def forward(self) -> Array:
        """Return the sums of the corners' pixels by their shares, shape (N, C, *size)."""
        image, weights = wide(self._image), self._weights
        count, channels = image.shape[:2]
        framed = np.zeros((count, channels, *self._tables.framed), image.dtype, like=image)
        framed[self._tables.inside] = image
        values = np.empty((count, channels, *weights.shape[1:]), image.dtype, like=image)
        write(gather_pixels, values, framed, self._numbers())
        self._values = values
        result = np.einsum("nckl,nkl->ncl", values, weights)
        dtype = np.result_type(self._image, self._grid)
        return result.reshape(count, channels, *self._grid.shape[1:-1]).astype(dtype, copy=False)

    def _numbers(self, step: int = 1) -> Array:
        """Return the numbers of the framed image's pixels at each corner, or at every second one, shape (N, corners, L)."""
        return self._cells + self._tables.corners[::step]

    def backward(self, grads: Sequence[Array | None], needed: Sequence[bool]) -> Sequence[Array | None]:
        """Return the gradients of the image and the grid, as ``fused`` asks for them."""
        values, (given,) = self._values, grads
        assert given is not None  # fused() asks only where there is one
        grad = wide(given).reshape(*values.shape[:2], values.shape[3])
        return (
            self._image_gradient(grad) if needed[0] else None,
            self._grid_gradient(grad) if needed[1] else None,
        )

    def _image_gradient(self, grad: Array) -> Array:
        sums = np.zeros((*grad.shape[:2], *self._tables.framed), self._values.dtype, like=grad)
        write(add_pixels, sums, self._numbers(2), grad, self._weights)
        return sums[self._tables.inside].astype(self._image.dtype)

    def _grid_gradient(self, grad: Array) -> Array:
        slopes = np.einsum("nckl,ncl->nkl", self._values, grad)
        (count, corners, length), dims = slopes.shape, self._grid.shape[-1]
        result = np.empty((dims, count, length), slopes.dtype, like=slopes)
        slopes = slopes.reshape(count, *(2,) * dims, length)
        for axis in range(dims):
            first, second = ((..., slice(end, end + 1), *[slice(None)] * (dims - axis)) for end in (0, 1))
            growth = slopes[second] - slopes[first]
            for other in range(dims):
                if other != axis:
                    growth *= self._shares[other]
            np.add.reduce(growth.reshape(count, corners // 2, length), 1, out=result[dims - 1 - axis])
        if self._slopes is not None:
            result *= self._slopes
        return result.transpose(1, 2, 0).reshape(self._grid.shape).astype(self._grid.dtype, copy=False)


def to_pixels(points: Array, slopes: Array, corners: bool) -> None:
    """Change coordinates from -1 to 1 to positions in pixels, counted from the centre of the first one.

    Args:
        points: the coordinates.
        slopes: pixels by number of the coordinates.
        corners: whether -1 and 1 are the centres of the outermost pixels instead of their outer edges.
    """
    points += 1
    points *= slopes
    if not corners:
        points -= 0.5


def gather_pixels(values: Array, image: Array, numbers: Array) -> None:
    """Write the pixels with these numbers, the same in all channels of a sample, to ``values``.

    Args:
        values: shape (N, C, K, L).
        image: shape (N, C, *lengths).
        numbers: shape (N, K, L).
    """
    planes = image.reshape(*image.shape[:2], math.prod(image.shape[2:]))
    for pixels, number, value in zip(planes, numbers, values):
        pixels.take(number, 1, value, "wrap")


def add_pixels(sums: Array, numbers: Array, grad: Array, weights: Array) -> None:
    """Add gradients by their weights to the pixels with these numbers, and to the next pixels.

    A pixel and the next one are taken as a complex number, so that one addition adds to both.

    Args:
        sums: shape (N, C, *lengths), C-contiguous.
        numbers: the same for all channels, shape (N, K / 2, L).
        grad: shape (N, C, L).
        weights: shape (N, K, L).
    """
    count, channels, length = grad.shape
    pairs, pixels = numbers.shape[1], math.prod(sums.shape[2:])
    planes = sums.reshape(count, channels, pixels)
    weights = weights.reshape(count, 1, pairs, 2, length)
    for part in _parts(count, weights[:1].nbytes * channels):
        shares = np.empty((*grad[part].shape[:2], pairs, length, 2), sums.dtype)
        np.multiply(grad[part][:, :, np.newaxis, np.newaxis], weights[part], out=shares.swapaxes(-1, -2))
        dtype = np.result_type(sums, np.complex64)
        _add(planes[part], numbers[part], shares.view(dtype).reshape(*shares.shape[:2], pairs * length))


def _parts(count: int, size: int) -> Iterator[slice]:
    """Yield slices of a batch of ``count`` samples, of ``size`` bytes each."""
    step = max(1, PART // max(1, size))
    return (slice(start, start + step) for start in range(0, count, step))


def _add(planes: Array, numbers: Array, values: Array) -> None:
    """Add complex values, shape (n, C, M), to pairs of pixels of planes, shape (n, C, pixels)."""
    pixels = planes.shape[2]
    pairs = np.ndarray(max(planes.size - 1, 0), values.dtype, planes, 0, planes.strides[2:])
    starts = np.arange(0, planes.size, pixels).reshape(*planes.shape[:2], 1)
    numbers = numbers.reshape(len(numbers), 1, values.shape[2])
    if values.shape[2] < MANY:
        np.add.at(pairs, (numbers + starts).reshape(-1), values.reshape(-1))
        return
    for at in np.ndindex(planes.shape[:2]):
        np.add.at(pairs[starts[at][0] :], numbers[at[0], 0], values[at])
