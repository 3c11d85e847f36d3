"""``WHOLE``: the whole spectrum of real numbers, from half of it. The other half is the conjugates of that, in reverse order.

That takes half the time of a transform of the numbers as complex ones. In its adjoint, only the part of a gradient counts that
is the spectrum of real numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...types import Array
from ..table.linear_map import LinearMap

Dims = tuple[int, ...]
_SMALL = 4096  # elements; up to here, a transform as complex numbers takes less time than to find the other half
_FIRST, _LATER, _LATER_REVERSED = slice(0, 1), slice(1, None), slice(None, 0, -1)


@np.errstate(invalid="ignore")  # of infinity, as other operations: nan, without a warning
def _whole(x: Array, dims: Dims, inverse: bool, scale: float) -> Array:
    if x.size <= _SMALL:
        numbers = _of_complex(x, dims, inverse)
        return numbers if scale == 1 else numbers * x.dtype.type(scale)
    last = dims[-1]
    length, known = x.shape[last], x.shape[last] // 2 + 1
    half = np.fft.rfft(x, axis=last)
    for dim in dims[:-1]:
        half = np.fft.fft(half, axis=dim)
    if scale != 1:
        half = half * x.dtype.type(scale)
    result = np.empty(x.shape, half.dtype, like=x)
    result[_at(x.ndim, {last: slice(known)})] = half
    for place, mirrored in _mirrored(dims[:-1]):
        there = _at(x.ndim, {**place, last: slice(known, None)})
        np.conj(half[_at(x.ndim, {**mirrored, last: slice(length - known, 0, -1)})], out=result[there])
    return np.conj(result) if inverse else result


@np.errstate(invalid="ignore")
def _whole_adjoint(g: Array, shape: Dims, dims: Dims, inverse: bool, scale: float) -> Array:
    if g.size <= _SMALL:
        numbers = _of_complex(g, dims, not inverse)
        return np.array(numbers.real * numbers.real.dtype.type(scale))
    last, ndim = dims[-1], len(shape)
    length, known = shape[last], shape[last] // 2 + 1
    g = g.astype(np.result_type(g, 1j), copy=False)
    conjugate = np.conj(g)
    given, other = (conjugate, g) if inverse else (g, conjugate)
    half = np.array(given[_at(ndim, {last: slice(known)})])
    for place, mirrored in _mirrored(dims[:-1]):
        half[_at(ndim, {**place, last: _FIRST})] += other[_at(ndim, {**mirrored, last: _FIRST})]
        ends = slice(None, length - known, -1)
        half[_at(ndim, {**place, last: _LATER})] += other[_at(ndim, {**mirrored, last: ends})]
    lengths = [shape[dim] for dim in dims]
    return np.fft.irfftn(half, lengths, dims, norm="forward") * g.real.dtype.type(scale / 2)


def _of_complex(x: Array, dims: Dims, inverse: bool) -> Array:
    """Return the transform, not scaled, without the checks of ``fftn``, which take longer than small transforms."""
    for dim in reversed(dims):
        x = np.fft.ifft(x, axis=dim, norm="forward") if inverse else np.fft.fft(x, axis=dim)
    return x


def _mirrored(dims: Sequence[int]) -> Iterator[tuple[dict[int, slice], dict[int, slice]]]:
    """Yield indices of parts of some dimensions, and those of the parts at the opposite frequencies."""
    for choice in itertools.product(((_FIRST, _FIRST), (_LATER, _LATER_REVERSED)), repeat=len(dims)):
        yield {dim: each[0] for dim, each in zip(dims, choice)}, {dim: each[1] for dim, each in zip(dims, choice)}


def _at(ndim: int, slices: dict[int, slice]) -> Any:
    return tuple([slices.get(dim, slice(None)) for dim in range(ndim)])


WHOLE = LinearMap("fft_whole", _whole, _whole_adjoint)
