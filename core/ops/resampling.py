"""Resampling along one dimension: which input elements each output element is a weighted sum of.

Nearest, linear and cubic interpolation, and means over uneven parts, are such tables, and so is the transpose of each. Of
several dimensions, one is resampled after the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..types import Array


class Tap(NamedTuple):
    """One input element of each of some outputs (``None``: all of them), and its weight (``None``: 1)."""

    outputs: Array | None
    inputs: Array
    weights: Array | None


class Taps(NamedTuple):
    """A table: ``size`` outputs from ``length`` inputs, and its transpose."""

    length: int
    size: int
    taps: tuple[Tap, ...]
    transposed: tuple[Tap, ...]

    @property
    def mT(self) -> Taps:  # noqa: N802 - as of matrices
        """The transposed table."""
        return Taps(self.size, self.length, self.transposed, self.taps)


def resample(x: Array, axis: int, table: Taps) -> Array:
    """``x`` with ``axis`` resampled."""
    shape = list(x.shape)
    shape[axis] = table.size
    tail = (1,) * (x.ndim - axis - 1)
    result = None
    for outputs, inputs, weights in table.taps:
        part = x.take(inputs, axis)
        if weights is not None:
            part *= weights.astype(x.dtype).reshape(-1, *tail)
        if outputs is None and result is None:
            result = part
        else:
            result = np.zeros(shape, x.dtype) if result is None else result
            where: Any = ... if outputs is None else (slice(None),) * axis + (outputs,)
            result[where] += part
    return np.zeros(shape, x.dtype) if result is None else result


def _table(length: int, inputs: Sequence[Sequence[int]], weights: Sequence[Sequence[float]]) -> Taps:
    """The table of output elements, each a list of inputs with their weights."""
    pairs = [
        (output, source, weight)
        for output, (sources, shares) in enumerate(zip(inputs, weights))
        for source, weight in zip(sources, shares)
    ]
    size = len(inputs)
    return Taps(length, size, _taps(pairs, size), _taps([(i, o, weight) for o, i, weight in pairs], length))


def _taps(pairs: list[tuple[int, int, float]], size: int) -> tuple[Tap, ...]:
    # The first of each output makes one tap, the second of each the next, and so on.
    rounds: list[list[tuple[int, int, float]]] = []
    seen = [0] * size
    for pair in sorted(pairs):
        if seen[pair[0]] == len(rounds):
            rounds.append([])
        rounds[seen[pair[0]]].append(pair)
        seen[pair[0]] += 1
    return tuple(_tap(members, size) for members in rounds)


def _tap(members: list[tuple[int, int, float]], size: int) -> Tap:
    outputs, inputs, weights = (np.array(column) for column in zip(*members))
    return Tap(None if len(members) == size else outputs, inputs, None if (weights == 1).all() else weights)


@functools.lru_cache(maxsize=256)
def nearest(length: int, size: int, scale: float, exact: bool) -> Taps:
    """Each output is the input that is nearest to it; ``scale`` is the distance of outputs in inputs."""
    shift = 0.5 if exact else 0.0
    sources = [[min(int((output + shift) * scale), length - 1)] for output in range(size)]
    return _table(length, sources, [[1.0]] * size)


@functools.lru_cache(maxsize=256)
def linear(length: int, size: int, scale: float, align_corners: bool) -> Taps:
    """Each output is on a line between two inputs."""
    inputs, weights = [], []
    for output in range(size):
        place = output * scale if align_corners else max((output + 0.5) * scale - 0.5, 0.0)
        low = min(int(place), length - 1)
        share = min(max(place - low, 0.0), 1.0)
        inputs.append([low, min(low + 1, length - 1)])
        weights.append([1 - share, share])
    return _table(length, inputs, weights)


@functools.lru_cache(maxsize=256)
def cubic(length: int, size: int, scale: float, align_corners: bool) -> Taps:
    """Each output is on a cubic curve through four inputs (Keys 1981, with a = -0.75); those at the border repeat."""
    inputs, weights = [], []
    for output in range(size):
        place = output * scale if align_corners else (output + 0.5) * scale - 0.5
        low = math.floor(place)
        inputs.append([min(max(low + offset, 0), length - 1) for offset in (-1, 0, 1, 2)])
        weights.append([keys(place - low - offset, -0.75) for offset in (-1, 0, 1, 2)])
    return _table(length, inputs, weights)


@functools.lru_cache(maxsize=256)
def smoothed(length: int, size: int, scale: float, is_cubic: bool) -> Taps:
    """Linear or cubic, with the curve as wide as the distance of outputs, so that no input is passed over."""
    curve: Callable[[float], float] = (lambda at: keys(at, -0.5)) if is_cubic else (lambda at: max(1 - abs(at), 0.0))
    stretch = max(scale, 1.0)
    reach = (2 if is_cubic else 1) * stretch
    inputs, weights = [], []
    for output in range(size):
        centre = scale * (output + 0.5)
        sources = range(max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), length))
        shares = [curve((source - centre + 0.5) / stretch) for source in sources]
        inputs.append(list(sources))
        weights.append([share / sum(shares) for share in shares])
    return _table(length, inputs, weights)


@functools.lru_cache(maxsize=256)
def means(length: int, size: int) -> Taps:
    """Each output is the mean of its part of the inputs; parts overlap where they do not divide evenly."""
    parts = [list(part) for part in uneven_parts(length, size)]
    return _table(length, parts, [[1 / len(part)] * len(part) for part in parts])


def uneven_parts(length: int, size: int) -> list[range]:
    """The inputs of each output of adaptive pooling."""
    return [range(output * length // size, -(-(output + 1) * length // size)) for output in range(size)]


def keys(distance: float, a: float) -> float:
    """The weight of an input at ``distance`` in cubic convolution (Keys 1981)."""
    at = abs(distance)
    if at <= 1:
        return ((a + 2) * at - (a + 3)) * at * at + 1
    return ((at - 5) * at + 8) * at * a - 4 * a if at < 2 else 0.0
