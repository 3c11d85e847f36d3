"""Views that can have the same element more than once: ``unfold`` and ``as_strided``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as _strided

from ...array_memory import typed_storage
from ...dtypes import wide_type
from ...errors import AutogradError
from ...tensors import Tensor
from ...types import Array
from ..index.array_elements import LinearIndex, add_at
from ..table.array_functions import add_reduce
from ..table.dims import one_dim
from ..table.linear_map import LinearMap
from ..table.nodes import records
from ..table.operation import operation


def _windows(x: Array, dim: int, size: int, step: int) -> Array:
    if not x.ndim:
        return x.reshape(1)[:size]
    count = (x.shape[dim] - size) // step + 1
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :], size)
    strides = (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :], x.strides[dim])
    return _strided(x, shape, strides, writeable=x.flags.writeable and step >= size)


def _overlap_added(g: Array, shape: tuple[int, ...], dim: int, size: int, step: int) -> Array:
    if not shape:
        return np.asarray(add_reduce(g, None))
    out = np.zeros(shape, wide_type(g.dtype))
    last = g.shape[dim] * step
    for offset in range(size):
        out[(slice(None),) * dim + (slice(offset, offset + last, step),)] += g[..., offset]
    return out.astype(g.dtype, copy=False)


_UNFOLD = LinearMap("unfold", _windows, _overlap_added, view=True)


@operation(function=False, method=True)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of the windows of a dimension: their numbers in its place, their elements as a new last dimension.

    Args:
        input: any shape and dtype.
        dimension: the dimension; negative ones count from the end.
        size: number of elements of a window.
        step: step from one window to the next.

    Raises:
        IndexError: there is no such dimension.
        ValueError: the windows are longer than the dimension, or ``step`` is not positive.
    """
    axis = one_dim(dimension, input.ndim)
    length = input.shape[axis] if input.ndim else 1
    if step <= 0 or not 0 <= size <= length:
        raise ValueError(f"unfold() needs 0 <= size <= {length}, the length, and step > 0; you gave {size} and {step}")
    return _UNFOLD.view(input, axis, size, step)


def overlap_add(frames: Tensor, length: int, step: int) -> Tensor:
    """Return the sum of overlapping frames, ``(..., length)``.

    Args:
        frames: ``(..., count, size)``.
        length: length of the result.
        step: step from the start of one frame to that of the next.
    """
    shape = (*frames.shape[:-2], length)
    return _UNFOLD.transposed(frames, shape, len(shape) - 1, frames.shape[-1], step)


def _at_strides(x: Array, size: tuple[int, ...], stride: tuple[int, ...], start: int) -> Array:
    whole = typed_storage(x)
    root = whole.reshape(-1) if whole.flags.c_contiguous else x.reshape(-1)
    if not all(size):
        return np.empty(size, x.dtype)
    # Unlike with NumPy's as_strided(), the base of the result is the array that owns the memory: views of it find all of it.
    octets, steps = root.view(np.uint8), [step * x.itemsize for step in stride]
    view: Array = np.ndarray(size, x.dtype, octets, start * x.itemsize, steps)
    view.flags.writeable = x.flags.writeable
    return view


def _collected(g: Array, shape: tuple[int, ...], size: Any, stride: Any, start: int) -> Array:
    indices = np.asarray(_at_strides(np.arange(math.prod(shape)), size, stride, start))
    return add_at(np.zeros(shape, g.dtype), LinearIndex(indices), g)


AS_STRIDED = LinearMap("as_strided", _at_strides, _collected, view=True)


@operation(method=True)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Return a view of the memory of ``input`` with any shape and strides.

    Args:
        input: any shape and dtype; if it is recorded, it must be contiguous and cover all of its memory.
        size: shape of the view.
        stride: number of elements from one index to the next, for each dimension; not negative.
        storage_offset: the first element, counted from the start of the memory; that of ``input`` if ``None``.

    Raises:
        AutogradError: ``input`` is recorded, and not contiguous or only a part of its memory.
        ValueError: the view would reach beyond the memory, or sizes and strides do not fit.
    """
    return AS_STRIDED.view(input, *checked_strides(input, size, stride, storage_offset))


def checked_strides(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the size, the stride and the first element of ``as_strided``. Errors and arguments: those of ``as_strided``."""
    root, start = typed_storage(input._array), input.storage_offset() if storage_offset is None else int(storage_offset)
    if len(size) != len(stride) or min((*size, *stride, start), default=0) < 0:
        raise ValueError(f"as_strided() needs as many strides as sizes, from 0: {size}, {stride}, {storage_offset}")
    last = start + sum((length - 1) * step for length, step in zip(size, stride))
    if all(size) and last >= root.size:
        raise ValueError(f"as_strided() would read element {last} of a memory of {root.size} elements")
    if records(input) and (root.size != input.numel() or not input.is_contiguous()):
        raise AutogradError(
            "as_strided() needs a recorded tensor to be contiguous and to cover all of its memory; clone() it first"
        )
    return tuple(size), tuple(stride), start


@operation(method=True)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return a copy of ``input`` with ``src`` in the elements that ``as_strided`` would show. Errors: ``as_strided``'s.

    Args:
        input: any shape and dtype; contiguous if it is recorded.
        src: shape ``size``.
        size: shape of the region.
        stride: number of elements from one index to the next, for each dimension; no element may be named twice.
        storage_offset: the first element, counted from the start of the memory; that of ``input`` if ``None``.
    """
    if tuple(src.shape) != tuple(size):
        raise ValueError(f"as_strided_scatter() needs a src of shape {tuple(size)}, and you gave {src.shape}")
    copy = input.contiguous() if records(input) else input
    result = copy.clone()
    start = copy.storage_offset() if storage_offset is None else storage_offset
    as_strided(result, size, stride, start).copy_(src)
    return result
