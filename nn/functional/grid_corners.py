"""Pixels around positions between them, and their shares: both passes of linear ``grid_sample`` on arrays.

The share of a pixel in a value falls from 1 to 0 within a distance of one pixel, in each dimension. So each position has two
neighbours in each dimension, four corners in an image and eight in a volume; the corners of positions outside the image are
the nearest ones inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce

import numpy as np

from ...core.extend import Array, wide

PART = 1 << 20  # bytes of shares that are made at once, of one sample at least
MANY = 1 << 11  # pairs of corners in a sample, from which on gradients are added to one plane after the other
_CELLS = np.array([-1, 0, 1]).reshape(-1, 1)


@lru_cache(maxsize=64)
def _tables(lengths: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return the last corners of cells, the steps from pixel to pixel in each dimension, and those from corner to corner."""
    steps = [math.prod(lengths[axis + 1 :]) for axis in range(len(lengths))]
    corners = reduce(np.add.outer, [np.array([0, step]) for step in steps])
    return (
        np.array(lengths, np.float32).reshape(-1, 1, 1) - 2,
        np.array(steps).reshape(-1, 1, 1),
        corners.reshape(-1, 1),
    )


class Corners:
    """Corners of the cells in which positions are, and the pixels there.

    Shapes: K corners, L positions in a sample.

    Args:
        image: shape (N, C, *lengths).
        positions: x, y (and z) of each, in pixels from the centre of the first one, shape (N, *size, dimensions).
    """

    def __init__(self, image: Array, positions: Array) -> None:
        self._image, self._positions = image, positions
        # In a dimension of one pixel, the second corner is one of zeros.
        padding = [(0, 1 if length == 1 else 0) for length in image.shape[2:]]
        self._padded = np.pad(image, [(0, 0), (0, 0), *padding]) if 1 in image.shape[2:] else image
        count, *size, dims = positions.shape
        # From here on dimensions are in the image's order: (dimensions, N, L).
        points = wide(positions).reshape(count, math.prod(size), dims)
        self._place(np.ascontiguousarray(points.transpose(2, 0, 1)[::-1]))
        shares = reduce(np.multiply, self._shares)
        self._weights = shares.reshape(count, 2**dims, shares.shape[-1])  # (N, K, L)

    def _place(self, points: Array) -> None:
        """Find the numbers of the cells' first corners, and the shares of both ends in each dimension."""
        last, steps, _ = _tables(self._padded.shape[2:])
        low = np.floor(points)
        first = np.fmin(np.fmax(low, 0), last)  # also of nan and infinity
        self._outside = low - first  # cells by which the position lies outside
        shares = np.empty((*points.shape[:2], 2, points.shape[2]), points.dtype)
        distance = np.subtract(points, low, out=shares[:, :, 0])
        distance += self._outside
        np.subtract(distance, 1, out=shares[:, :, 1])
        np.maximum(np.subtract(1, np.abs(shares, out=shares), out=shares), 0, out=shares)
        self._shares = self._by_axis(shares)
        numbers = first.astype(np.int64)
        numbers *= steps
        self._first = np.add.reduce(numbers, 0)[:, np.newaxis]  # (N, 1, L)

    def _by_axis(self, ends: Array) -> list[Array]:
        """Return both ends of each dimension along an axis of its own, to be broadcast: shape (N, 1, 2, L) or (N, 2, 1, L)."""
        dims, count, _, length = ends.shape
        axes = range(dims)
        return [ends[axis].reshape(count, *(2 if each == axis else 1 for each in axes), length) for axis in axes]

    def forward(self) -> Array:
        """Return the sums of the corners' pixels by their shares, shape (N, C, *size)."""
        image, weights = wide(self._padded), self._weights
        planes = image.reshape(*image.shape[:2], math.prod(image.shape[2:]))
        numbers = self._corners()  # (N, K * L)
        values = np.empty((*image.shape[:2], numbers.shape[1]), image.dtype)
        for sample in range(len(image)):
            planes[sample].take(numbers[sample], 1, out=values[sample], mode="wrap")
        self._values = values.reshape(*image.shape[:2], *weights.shape[1:])  # (N, C, K, L)
        result = np.einsum("nckl,nkl->ncl", self._values, weights)
        size = self._positions.shape[1:-1]
        dtype = np.result_type(self._image, self._positions)
        return result.reshape(*self._image.shape[:2], *size).astype(dtype, copy=False)

    def _corners(self, step: int = 1) -> Array:
        """Return the numbers of the pixels at each corner, or at every second one, shape (N, corners * L)."""
        numbers = self._first + _tables(self._padded.shape[2:])[2][::step]
        return numbers.reshape(len(numbers), math.prod(numbers.shape[1:]))

    def backward(self, grads: Sequence[Array | None], needed: Sequence[bool]) -> Sequence[Array | None]:
        """Return the gradients of the image and the positions, as ``fused`` asks for them."""
        grad = wide(np.asarray(grads[0])).reshape(*self._values.shape[:2], self._values.shape[3])
        return (
            self._image_gradient(grad) if needed[0] else None,
            self._position_gradient(grad) if needed[1] else None,
        )

    def _image_gradient(self, grad: Array) -> Array:
        (count, channels, length), lengths = grad.shape, self._padded.shape[2:]
        sums = np.zeros((count, channels, math.prod(lengths)), self._values.dtype)
        dtype = np.result_type(sums, np.complex64)  # both corners of a row, neighbours in memory, as one number
        numbers = self._corners(2)  # (N, K / 2 * L)
        weights = self._weights.reshape(count, 1, self._weights.shape[1] // 2, 2, length)
        for part in self._parts():
            shares = np.empty((*grad[part].shape[:2], weights.shape[2], length, 2), sums.dtype)
            for end in range(2):
                np.multiply(grad[part][:, :, np.newaxis], weights[part][:, :, :, end], out=shares[..., end])
            _add(sums[part], numbers[part], shares.reshape(*shares.shape[:2], 2 * numbers.shape[1]).view(dtype))
        image = self._image
        inside = tuple(map(slice, image.shape))
        return sums.reshape(self._padded.shape)[inside].astype(image.dtype, "C", copy=False)

    def _parts(self) -> Iterator[slice]:
        """Yield slices of the batch."""
        count, channels = self._image.shape[:2]
        step = max(1, PART // max(1, self._weights[:1].nbytes * channels))
        return (slice(start, start + step) for start in range(0, count, step))

    def _position_gradient(self, grad: Array) -> Array:
        slopes = np.einsum("nckl,ncl->nkl", self._values, grad)
        # By how much an end's share grows from one side of the cell to the other: -1, 0 or 1.
        where = (self._outside[:, :, np.newaxis] == _CELLS.astype(self._outside.dtype)).view(np.int8)
        growth = self._by_axis((where[:, :, :2] - where[:, :, 1:]).astype(slopes.dtype))
        result = np.empty((*slopes.shape[::2], len(growth)), self._positions.dtype)
        for axis, each in enumerate(growth):
            factors = reduce(np.multiply, [*self._shares[:axis], each, *self._shares[axis + 1 :]]).reshape(slopes.shape)
            result[..., len(growth) - 1 - axis] = np.einsum("nkl,nkl->nl", slopes, factors)
        return result.reshape(self._positions.shape)


def _add(planes: Array, numbers: Array, values: Array) -> None:
    """Add values to the pixels with these numbers and to the next ones.

    A pixel and the next one are taken as a complex number, so that one addition adds to both.

    Args:
        planes: shape (n, C, pixels), C-contiguous.
        numbers: the same for all channels, shape (n, M).
        values: complex, shape (n, C, M).
    """
    pixels = planes.shape[2]
    pairs = np.ndarray(max(planes.size - 1, 0), values.dtype, planes, 0, planes.strides[2:])
    starts = np.arange(0, planes.size, pixels).reshape(*planes.shape[:2], 1)
    if numbers.shape[1] < MANY:
        np.add.at(pairs, (numbers[:, np.newaxis] + starts).reshape(-1), values.reshape(-1))
        return
    for at in np.ndindex(planes.shape[:2]):
        np.add.at(pairs[starts[at][0] :], numbers[at[0]], values[at])
