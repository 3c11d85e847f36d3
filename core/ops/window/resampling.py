"""Resampling of one dimension: each output element is a weighted sum of input elements, and so is the adjoint.

Nearest, linear and cubic interpolation and the means of adaptive pooling are tables of sources and weights. Dimensions are
resampled one after the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import wide
from ...types import Array
from ..table.linear_map import LinearMap

# The sources of one output element: (input element, weight).
Sources = list[tuple[int, float]]


class Tap(NamedTuple):
    """One source of each of some output elements (``None`` for all), and its weight (``None`` for 1)."""

    outputs: Array | None
    inputs: Array
    weights: Array | None


class Table(NamedTuple):
    """Taps whose sum is an output of ``size`` elements."""

    size: int
    taps: tuple[Tap, ...]


def resample(x: Array, axis: int, table: Table) -> Array:
    """Return ``x`` with one dimension resampled to the size of ``table``.

    Args:
        x: any shape.
        axis: the dimension, from 0.
        table: table from its length to the new one.
    """
    shape = (*x.shape[:axis], table.size, *x.shape[axis + 1 :])
    dtype, x = x.dtype, wide(x)
    result = None
    for outputs, inputs, weights in table.taps:
        part = x.take(inputs, axis)
        if weights is not None:
            part *= weights.astype(x.dtype).reshape(-1, *(1,) * (x.ndim - axis - 1))
        if outputs is None and result is None:
            result = part
        else:
            result = np.zeros(shape, x.dtype) if result is None else result
            index: Any = ... if outputs is None else (slice(None),) * axis + (outputs,)
            result[index] += part
    return np.zeros(shape, dtype) if result is None else result.astype(dtype, copy=False)


RESAMPLE = LinearMap(
    "resample",
    lambda x, axis, table, adjoint: resample(x, axis, table),
    lambda g, shape, axis, table, adjoint: resample(g, axis, adjoint),
)


@functools.lru_cache(maxsize=1024)
def tables(sources: Callable[..., Sources], length: int, size: int, *options: Any) -> tuple[Table, Table]:
    """Return the table from ``length`` to ``size`` elements and that of the adjoint, the parameters of ``RESAMPLE``.

    Args:
        sources: a function of this module, called for each output element with its number, ``length`` and ``options``.
        length, size: number of input and output elements.
        options: further arguments of ``sources``.
    """
    forth = [sorted(sources(output, length, *options)) for output in range(size)]
    back: list[Sources] = [[] for _ in range(length)]
    for output, row in enumerate(forth):
        for source, weight in row:
            back[source].append((output, weight))
    return _table(forth), _table(back)


def _table(rows: list[Sources]) -> Table:
    # The first source of each output makes one tap, the second of each the next, and so on.
    ranks = range(max(map(len, rows), default=0))
    return Table(len(rows), tuple(_tap(rows, rank) for rank in ranks))


def _tap(rows: list[Sources], rank: int) -> Tap:
    members = [(output, *row[rank]) for output, row in enumerate(rows) if len(row) > rank]
    outputs, inputs, weights = (np.array(column) for column in zip(*members))
    return Tap(None if len(members) == len(rows) else outputs, inputs, None if (weights == 1).all() else weights)


def in_integers(table: Table) -> tuple[Table, int]:
    """Return the table with its weights times a power of two, rounded; and the power. PyTorch resamples bytes so.

    The power is the largest at which all weights fit into 16 bits (Pillow's ``Resample.c``, which PyTorch follows).
    """
    largest = max(
        (1.0 if tap.weights is None else float(tap.weights.max(initial=0)) for tap in table.taps), default=1.0
    )
    bits = next(bits for bits in range(23) if bits == 22 or int(0.5 + largest * (1 << (bits + 1))) >= 1 << 15)
    taps = []
    for tap in table.taps:
        exact = (np.ones(len(tap.inputs)) if tap.weights is None else tap.weights) * (1 << bits)
        taps.append(Tap(tap.outputs, tap.inputs, np.trunc(exact + np.copysign(0.5, exact)).astype(np.int64)))
    return Table(table.size, tuple(taps)), bits


def nearest(output: int, length: int, scale: float, exact: bool) -> Sources:
    """Return the nearest input of an output.

    Args:
        output: number of the output.
        length: number of inputs.
        scale: distance of outputs, in inputs.
        exact: whether to measure from the centres of elements, as "nearest-exact" does; PyTorch's "nearest" takes
            ``floor(output * scale)``.
    """
    return [(min(int((output + (0.5 if exact else 0.0)) * scale), length - 1), 1.0)]


def linear(output: int, length: int, scale: float, align_corners: bool) -> Sources:
    """Return the two inputs next to an output, weighted linearly by their distance.

    Args:
        output: number of the output.
        length: number of inputs.
        scale: distance of outputs, in inputs.
        align_corners: whether the first and last outputs lie at the first and last inputs.
    """
    position = output * scale if align_corners else max((output + 0.5) * scale - 0.5, 0.0)
    low = min(int(position), length - 1)
    share = min(max(position - low, 0.0), 1.0)
    return [(low, 1 - share), (min(low + 1, length - 1), share)]


def cubic(output: int, length: int, scale: float, align_corners: bool) -> Sources:
    """Return the four inputs around an output, weighted by Keys' function with a = -0.75; those at the border repeat.

    Args:
        output: number of the output.
        length: number of inputs.
        scale: distance of outputs, in inputs.
        align_corners: whether the first and last outputs lie at the first and last inputs.
    """
    position = output * scale if align_corners else (output + 0.5) * scale - 0.5
    low = math.floor(position)
    return [(min(max(low + n, 0), length - 1), _keys(position - low - n, -0.75)) for n in (-1, 0, 1, 2)]


def antialiased(output: int, length: int, scale: float, is_cubic: bool) -> Sources:
    """Return the inputs weighted by a linear or cubic function that is at least as wide as the distance of outputs.

    Args:
        output: number of the output.
        length: number of inputs.
        scale: distance of outputs, in inputs.
        is_cubic: whether the function is Keys' with a = -0.5 instead of a triangle.
    """
    stretch = max(scale, 1.0)
    reach = (2 if is_cubic else 1) * stretch
    centre = scale * (output + 0.5)
    sources = range(max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), length))
    distances = [(source - centre + 0.5) / stretch for source in sources]
    shares = [_keys(at, -0.5) if is_cubic else max(1 - abs(at), 0.0) for at in distances]
    total = sum(shares)
    return [(source, share / total) for source, share in zip(sources, shares)]


def _keys(distance: float, a: float) -> float:
    """Return the weight of an input in cubic convolution (Keys, "Cubic convolution interpolation", 1981, equation 15)."""
    at = abs(distance)
    if at <= 1:
        return ((a + 2) * at - (a + 3)) * at * at + 1
    return ((at - 5) * at + 8) * at * a - 4 * a if at < 2 else 0.0
