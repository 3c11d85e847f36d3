"""``ImageRows``: a batch of small images row by row, and which rows and pixels a window sees.

The samples are the last dimension, and each row of the images is a matrix: (channels, pixels and samples). What a column of
the window sees at the stops of one row is a slice of such matrices. They lie one behind the other, so elements of the window
one below the other see one matrix: (rows and channels, pixels and samples).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...types import Array, DType
from .window import Window


class Run(NamedTuple):
    """Elements of a column of the window, one below the other, that see rows of the image, one below the other.

    Attributes:
        element: the number of the first one in its column.
        row: the row that it sees.
        height: the number of elements.
    """

    element: int
    row: int
    height: int


class Column(NamedTuple):
    """Column of the window, and the pixels of a row of the image that it sees: one at each of some stops.

    Attributes:
        number: of the column.
        phase: the first pixel, modulo the stride. Pixels of one phase lie one behind the other.
        pixel: the first pixel, divided by the stride.
        stop: the first stop that sees a pixel, and no padding.
        stops: the number of these stops.
    """

    number: int
    phase: int
    pixel: int
    stop: int
    stops: int


@functools.lru_cache(maxsize=256)
def runs(window: Window) -> tuple[tuple[Run, ...], ...]:
    """Return what the columns of the window see at each row of stops; padding is left out."""
    lengths, stops, kernel, steps, gaps, padding = (each[:-1] for each in window)
    found = []
    for stop in itertools.product(*map(range, stops)):
        seen: list[Run] = []
        for number, element in enumerate(itertools.product(*map(range, kernel))):
            place = [
                s * step + e * gap - before for s, step, e, gap, before in zip(stop, steps, element, gaps, padding)
            ]
            if not all(0 <= each < length for each, length in zip(place, lengths)):
                continue
            row = sum(each * math.prod(lengths[axis + 1 :]) for axis, each in enumerate(place))
            last = seen[-1] if seen else None
            if last is not None and (last.element + last.height, last.row + last.height) == (number, row):
                seen[-1] = last._replace(height=last.height + 1)
            else:
                seen.append(Run(number, row, 1))
        found.append(tuple(seen))
    return tuple(found)


@functools.lru_cache(maxsize=256)
def columns(window: Window) -> tuple[Column, ...]:
    """Return the columns of the window that see pixels, those that see most of them first."""
    length, stops, kernel, step, gap, before = (each[-1] for each in window)
    found = []
    for number in range(kernel):
        offset = number * gap - before
        first = max(0, -(offset // step))
        count = min(stops, (length - 1 - offset) // step + 1) - first
        if count > 0:
            pixel = first * step + offset
            found.append(Column(number, pixel % step, pixel // step, first, count))
    return tuple(sorted(found, key=lambda column: -column.stops))


class ImageRows:
    """A batch of images: for each phase an array (groups, rows * channels of a group, pixels * samples).

    Args:
        arrays: by phase: the pixel's place in its row, modulo ``stride``.
        stride: the number of phases; those that are not used may be missing.
        channels: of a group.
        samples: the number of images.
    """

    def __init__(self, arrays: dict[int, Array], stride: int, channels: int, samples: int) -> None:
        self.arrays, self._stride, self._channels, self._samples = arrays, stride, channels, samples

    @staticmethod
    def of(x: Array, groups: int, dtype: DType, stride: int = 1, phases: Iterable[int] = (0,)) -> ImageRows:
        """Return the rows of images.

        Args:
            x: shape (N, C, *size).
            groups: number of groups of channels.
            dtype: of the rows.
            stride: the number of phases.
            phases: those that are used.
        """
        seen, arrays = _by_rows(x, groups), dict[int, Array]()
        for phase in sorted(set(phases)):
            part = seen[..., phase::stride].transpose(1, 3, 2, 4, 0)
            rows = np.empty(part.shape, dtype, like=x)
            rows[...] = part
            arrays[phase] = rows.reshape(groups, part.shape[1] * part.shape[2], part.shape[3] * part.shape[4])
        return ImageRows(arrays, stride, x.shape[1] // groups, len(x))

    @staticmethod
    def new(shape: Sequence[int], groups: int, dtype: DType, like: Array, stride: int = 1) -> ImageRows:
        """Return the rows of images without elements yet.

        Args:
            shape: of the images, (N, C, *size).
            like: an array of the kind of the rows; the others are those of ``of``.
        """
        count, channels, *lengths, length = shape
        height = math.prod(lengths) * (channels // groups)
        sizes = [(groups, height, -(-(length - phase) // stride) * count) for phase in range(min(stride, length))]
        arrays = {phase: np.empty(size, dtype, like=like) for phase, size in enumerate(sizes)}
        return ImageRows(arrays, stride, channels // groups, count)

    def seen(self, run: Run, column: Column) -> Array:
        """Return the pixels that a run of a column sees: a view (groups, rows * channels, stops * samples)."""
        start = column.pixel * self._samples
        rows = self.arrays[column.phase][:, self.channels(run.row, run.height)]
        return rows[..., start : start + column.stops * self._samples]

    def channels(self, row: int, count: int = 1) -> slice:
        """Return where rows begin and end among the channels of all rows; or elements of a column in those of a weight."""
        return slice(row * self._channels, (row + count) * self._channels)

    def stops(self, column: Column) -> slice:
        """Return where the stops of a column begin and end in a row of outputs."""
        return slice(column.stop * self._samples, (column.stop + column.stops) * self._samples)

    def write(self, images: Array, groups: int) -> None:
        """Write the images to an array of shape (N, C, *size)."""
        seen = _by_rows(images, groups)
        for phase, rows in self.arrays.items():
            part = seen[..., phase :: self._stride]
            samples, _, channels, height, length = part.shape
            part[...] = rows.reshape(groups, height, channels, length, samples).transpose(4, 0, 2, 1, 3)


def _by_rows(x: Array, groups: int) -> Array:
    """Return images as (N, groups, channels of a group, rows, pixels of a row)."""
    count, channels, *lengths, length = x.shape
    return x.reshape(count, groups, channels // groups, math.prod(lengths), length)
