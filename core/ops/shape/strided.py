"""Views that can have the same element more than once: ``unfold`` and ``as_strided``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as _strided

from ...array_memory import typed_storage
from ...dtypes import wide_type
from ...tensors import Tensor
from ...types import Array
from ..index.array_elements import LinearIndex, add_at
from ..table.array_functions import add_reduce
from ..table.dims import one_dim
from ..table.linear_map import LinearMap
from ..table.nodes import records
from ..table.operation import operation
from ..table.rows import Row
from ..table.views import view_of


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


# The strides of a tensor, in elements, and the number of its first element in its memory.
Layout = tuple[tuple[int, ...], int]


def _at_strides(x: Array, size: tuple[int, ...], stride: tuple[int, ...], start: int) -> Array:
    root = typed_storage(x).ravel("K")
    if not all(size):
        return np.empty(size, x.dtype)
    # Unlike with NumPy's as_strided(), the base of the result is the array that owns the memory: views of it find all of it.
    octets, steps = root.view(np.uint8), [step * x.itemsize for step in stride]
    view: Array = np.ndarray(size, x.dtype, octets, start * x.itemsize, steps)
    view.flags.writeable = x.flags.writeable
    return view


def _positions(size: tuple[int, ...], stride: tuple[int, ...], start: int) -> Array:
    result = np.asarray(start)
    for length, step in zip(size, stride):
        result = result[..., None] + np.arange(length) * step
    return result


def _moved(g: Array, former: Array, wanted: Array, shared: Array) -> Array:
    """Return the elements at the positions ``wanted`` of a memory of zeros, to which ``g`` is added at those of ``former``.

    Elements at one position of ``shared``, which an expanded tensor has, get equal parts.
    """
    extent = max(former.max(initial=-1), wanted.max(initial=-1)) + 1
    memory = add_at(np.zeros(extent, g.dtype), LinearIndex(former), g)
    counts = np.bincount(shared.reshape(-1), minlength=extent)
    if (counts > 1).any():
        memory /= np.maximum(counts, 1).astype(g.dtype)
    return np.asarray(memory[wanted])


def _read(x: Array, size: tuple[int, ...], stride: tuple[int, ...], start: int, layout: Layout) -> Array:
    own = _positions(x.shape, *layout)
    return _moved(x, own, _positions(size, stride, start), own)


def _collected(g: Array, shape: tuple[int, ...], size: Any, stride: Any, start: int, layout: Layout) -> Array:
    own = _positions(shape, *layout)
    return _moved(g, _positions(size, stride, start), own, own)


# Gradients have a memory of their own, so these maps know the layout of the input's. Rows of views that can be written to
# also know how to make the view again, from a copy of the memory.
_STRIDED = LinearMap("as_strided", _read, _collected)
_WRITABLE = Row("as_strided", *_STRIDED.row.rules, view=_at_strides, holomorphic=False)


def strided_view(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> tuple[Array, Row, tuple[Any, ...], tuple[Any, ...]]:
    """Return the array of ``as_strided``, and the row, arguments and parameters of its history. Errors: ``as_strided``'s."""
    region = checked_strides(input, size, stride, storage_offset)
    base = input if input._base is None else input._base
    whole = base.is_contiguous() and typed_storage(base._array).size == base.numel()
    layout = (tuple(input.stride()), input.storage_offset())
    params = (tuple(input.shape), *region, layout)
    return _at_strides(input._array, *region), _WRITABLE if whole else _STRIDED.row, region, params


@operation(method=True)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Return a view of the memory of ``input`` with any shape and strides.

    Args:
        input: any shape and dtype. Gradients reach the elements of the memory that it has.
        size: shape of the view.
        stride: number of elements from one index to the next, for each dimension; not negative.
        storage_offset: the first element, counted from the start of the memory; that of ``input`` if ``None``.

    Raises:
        ValueError: the view would reach beyond the memory, or sizes and strides do not fit.
    """
    return view_of(input, *strided_view(input, size, stride, storage_offset))


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
