"""Pixels around positions between them, and their shares: both passes of linear ``grid_sample`` on arrays.

Each position has two neighbours in each dimension: four corners in an image, eight in a volume. A corner outside the image
counts as 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce

import numpy as np

from ...core.extend import Array, wide

PART = 1 << 20  # bytes of pixels' numbers that are made at once, of one sample at least
MANY = 1 << 12  # corners in a sample, from which on gradients are added to one plane after the other


@lru_cache(maxsize=64)
def _columns(lengths: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the lengths, and the steps from one pixel to the next in each dimension, to be broadcast with ends."""
    steps = [math.prod(lengths[axis + 1 :]) for axis in range(len(lengths))]
    shape = (-1, 1, 1, 1)
    return np.array(lengths, np.float32).reshape(shape), np.array(steps).reshape(shape)


class Corners:
    """Corners of the cells in which positions are, and the pixels there.

    Shapes: K corners, L positions in a sample.

    Args:
        image: shape (N, C, *lengths).
        positions: x, y (and z) of each, in pixels from the centre of the first one, shape (N, *size, dimensions).
    """

    def __init__(self, image: Array, positions: Array) -> None:
        self._image, self._positions = image, positions
        self._lengths = tuple(image.shape[2:])
        count, dims = len(image), len(self._lengths)
        # From here on dimensions are in the image's order: (dimensions, N, L).
        self._place(np.ascontiguousarray(wide(positions).reshape(count, -1, dims).transpose(2, 0, 1)[::-1]))
        shares = reduce(np.multiply, self._shares)
        self._weights = shares.reshape(count, 2**dims, shares.shape[-1])  # (N, K, L)

    def _place(self, points: Array) -> None:
        """Find the ends in each dimension, their shares and whether they are inside, and the numbers of the corners' pixels."""
        ends = np.empty((*points.shape[:2], 2, points.shape[2]), points.dtype)
        low, high = ends[:, :, 0], ends[:, :, 1]
        np.add(np.floor(points, out=low), 1, out=high)
        shares, (lengths, steps) = np.empty_like(ends), _columns(self._lengths)
        np.subtract(high, points, out=shares[:, :, 0])
        np.subtract(points, low, out=shares[:, :, 1])
        inside = ends >= 0
        inside &= ends < lengths
        shares *= inside
        places = np.fmin(np.fmax(ends, 0, out=ends), lengths - 1, out=ends).astype(np.int64)  # also of nan and infinity
        places *= steps
        self._shares, self._inside = self._by_axis(shares), self._by_axis(inside)
        self._numbers = reduce(np.add, self._by_axis(places)).reshape(len(self._image), -1)  # (N, K * L)

    def _by_axis(self, ends: Array) -> list[Array]:
        """Return both ends of each dimension along an axis of its own, to be broadcast: shape (N, 1, 2, L) or (N, 2, 1, L)."""
        dims, count, _, length = ends.shape
        axes = range(dims)
        return [ends[axis].reshape(count, *(2 if each == axis else 1 for each in axes), length) for axis in axes]

    def forward(self) -> Array:
        """Return the sums of the corners' pixels by their shares, shape (N, C, *size)."""
        image, weights = wide(self._image), self._weights
        planes = image.reshape(*image.shape[:2], math.prod(self._lengths))
        values = np.empty((*image.shape[:2], self._numbers.shape[1]), image.dtype)
        for sample in range(len(image)):
            planes[sample].take(self._numbers[sample], 1, out=values[sample], mode="wrap")
        self._values = values.reshape(*image.shape[:2], *weights.shape[1:])  # (N, C, K, L)
        result = np.einsum("nckl,nkl->ncl", self._values, weights)
        size = self._positions.shape[1:-1]
        dtype = np.result_type(self._image, self._positions)
        return result.reshape(*self._image.shape[:2], *size).astype(dtype, copy=False)

    def backward(self, grads: Sequence[Array | None], needed: Sequence[bool]) -> Sequence[Array | None]:
        """Return the gradients of the image and the positions, as ``fused`` asks for them."""
        grad = wide(np.asarray(grads[0])).reshape(*self._values.shape[:2], self._values.shape[3])
        return (
            self._image_gradient(grad) if needed[0] else None,
            self._position_gradient(grad) if needed[1] else None,
        )

    def _image_gradient(self, grad: Array) -> Array:
        image = self._image
        result = np.zeros((*image.shape[:2], math.prod(self._lengths)), self._values.dtype)
        for part in self._parts():
            shares = np.multiply(grad[part][:, :, np.newaxis], self._weights[part][:, np.newaxis], dtype=result.dtype)
            _add(result[part], self._numbers[part], shares.reshape(*shares.shape[:2], -1))
        return result.reshape(image.shape).astype(image.dtype, copy=False)

    def _parts(self) -> Iterator[slice]:
        """Yield slices of the batch."""
        count, channels = self._image.shape[:2]
        step = max(1, PART // max(1, self._numbers[:1].nbytes * channels))
        return (slice(start, start + step) for start in range(0, count, step))

    def _position_gradient(self, grad: Array) -> Array:
        dims = len(self._lengths)
        slopes = np.einsum("nckl,ncl->nkl", self._values, grad)
        slopes = slopes.reshape(len(slopes), *(2,) * dims, slopes.shape[-1])
        result = np.empty((dims, len(slopes), slopes.shape[-1]), slopes.dtype)
        for axis, inside in enumerate(self._inside):
            # A share grows by as much as the position moves away from the corner on the other side.
            others = (share for other, share in enumerate(self._shares) if other != axis)
            ends = reduce(np.multiply, others, slopes * inside)
            low, high = (ends[(slice(None),) * (axis + 1) + (end,)] for end in (0, 1))
            np.add.reduce(high - low, tuple(range(1, dims)), out=result[dims - 1 - axis])
        return result.transpose(1, 2, 0).reshape(self._positions.shape).astype(self._positions.dtype, copy=False)


def _add(planes: Array, numbers: Array, values: Array) -> None:
    """Add values to the pixels with these numbers.

    Args:
        planes: shape (n, C, pixels), C-contiguous.
        numbers: the same for all channels, shape (n, M).
        values: shape (n, C, M).
    """
    if numbers.shape[1] >= MANY:
        for sample, channel in np.ndindex(planes.shape[:2]):
            np.add.at(planes[sample, channel], numbers[sample], values[sample, channel])
        return
    starts = np.arange(math.prod(planes.shape[:2])).reshape(*planes.shape[:2], 1) * planes.shape[2]
    np.add.at(planes.reshape(-1), (numbers[:, np.newaxis] + starts).reshape(-1), values.reshape(-1))
