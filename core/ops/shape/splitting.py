"""Splitting of tensors into views: ``split``, ``chunk``, ``tensor_split``, ``unbind``, ``narrow``.

The parts of one split share one node: its backward pass joins their gradients, where a node for each part would make a
full array of zeros each time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.edges import gradient_edge
from ...autograd.node import Edges
from ...tensors import Tensor
from ..index.array_elements import model_of
from ..index.elements import FULL, PART
from ..index.indexing import part
from ..table.dims import one_dim
from ..table.nodes import records
from ..table.operation import operation
from ..table.outputs import OutputsNode
from ..table.rows import ARRAYS, Row
from ..table.views import register


def _together(xp: Any, grads: Sequence[Any], arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
    """Return the joined gradients of the parts; those of unused parts are zeros."""
    regions, shape, dtype = arguments
    if xp is ARRAYS:
        result = np.empty(shape, dtype, like=model_of(next(grad for grad in grads if grad is not None)))
        for region, grad in zip(regions, grads):
            result[region] = 0 if grad is None else grad
        return (result,)
    empty = np.empty(shape, np.bool_)
    parts = [
        Tensor(np.zeros(empty[region].shape, dtype)) if grad is None else grad for region, grad in zip(regions, grads)
    ]
    join = xp.concatenate if isinstance(regions[0][-1], slice) else xp.stack
    return (join(parts, len(regions[0]) - 1),)


_SPLIT, _UNBIND = Row("split", pull=_together), Row("unbind", pull=_together)


def _parts(kind: Row, input: Tensor, regions: list[Any]) -> tuple[Tensor, ...]:
    if len(regions) < 2 or not records(input):
        return tuple(part(input, region) for region in regions)
    x, counter, row = input._array, input._counter, PART.row
    node = OutputsNode(kind, (gradient_edge(input),), len(regions), (), (regions, x.shape, x.dtype))
    views = []
    for slot, region in enumerate(regions):
        out = x[region]
        if type(out) is not np.ndarray:
            region = (*region, Ellipsis)
            out = x[region]
        # As view_of does, but with one node for all parts.
        view = Tensor(out, True, (node, slot))
        view._counter, view._view = counter, (input, row, (region,), (x.shape, region))
        register(input, view)
        views.append(view)
    return tuple(views)


@operation(method=True, synonyms=("unsafe_split",))
def split(input: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of dimension ``dim``.

    Args:
        input: at least 1-d, any dtype.
        split_size_or_sections: the length of each part (the last may be shorter), or a list of the lengths.
        dim: the dimension to split.

    Raises:
        IndexError: there is no such dimension.
        ValueError: the sum of the lengths is not that of ``dim``, or a length is negative, or 0 for all parts.
    """
    if not isinstance(split_size_or_sections, int):
        return _sections("split", input, split_size_or_sections, dim)
    axis, length = _length("split", input, dim)
    size = split_size_or_sections
    if size < 0 or (not size and length):
        raise ValueError(f"split() needs a positive size, and you gave {size}")
    return _cut(input, axis, [*range(0, max(length, 1), size or 1), length])


@operation(method=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of dimension ``dim``. Errors: those of ``split``.

    Args:
        input: at least 1-d, any dtype.
        split_sizes: the lengths of the parts.
        dim: the dimension to split.
    """
    return _sections("split_with_sizes", input, split_sizes, dim)


def _sections(name: str, input: Tensor, sizes: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    axis, length = _length(name, input, dim)
    bounds = [0]
    for size in sizes:
        bounds.append(bounds[-1] + size)
    if bounds[-1] != length or min(sizes, default=0) < 0:
        raise ValueError(f"{name}() sizes {list(sizes)} do not add up to {length}, the length of dim {dim}")
    return _cut(input, axis, bounds)


@operation(method=True, synonyms=("unsafe_chunk",))
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of at most ``chunks`` consecutive parts of dimension ``dim``, of one length; the last may be shorter.

    Args:
        input: at least 1-d, any dtype.
        chunks: the largest number of parts.
        dim: the dimension to split.

    Raises:
        IndexError: there is no such dimension.
        ValueError: ``chunks`` is not positive.
    """
    axis, length = _length("chunk", input, dim)
    if chunks <= 0:
        raise ValueError(f"chunk() needs a positive number of chunks, and you gave {chunks}")
    if not length:
        return _cut(input, axis, [0] * (chunks + 1))
    return _cut(input, axis, [*range(0, length, -(-length // chunks)), length])


@operation(method=True)
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of dimension ``dim``.

    Args:
        input: at least 1-d, any dtype.
        indices_or_sections: the number of parts, whose lengths differ by at most 1, or the indices where parts after the
            first begin.
        dim: the dimension to split.

    Raises:
        IndexError: there is no such dimension.
        ValueError: the number of parts is not positive.
    """
    axis, length = _length("tensor_split", input, dim)
    given: Any = indices_or_sections.tolist() if isinstance(indices_or_sections, Tensor) else indices_or_sections
    if isinstance(given, int):
        if given <= 0:
            raise ValueError(f"tensor_split() needs a positive number of sections, and you gave {given}")
        small, larger = divmod(length, given)
        return _cut(input, axis, [number * small + min(number, larger) for number in range(given + 1)])
    bounds = [0, *(max(length + index, 0) if index < 0 else min(index, length) for index in given), length]
    # Indices that decrease make empty parts.
    regions = [(FULL,) * axis + (slice(start, max(start, end)),) for start, end in itertools.pairwise(bounds)]
    forward = all(start <= end for start, end in itertools.pairwise(bounds))
    return _parts(_SPLIT, input, regions) if forward else tuple(part(input, region) for region in regions)


@operation(method=True)
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return ``tensor_split`` of dimension 1, or 0 for vectors; a number of parts must divide its length.

    Raises:
        ValueError: ``input`` is 0-d, or the number of parts does not divide the length.
    """
    return _equally("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1, 1)


@operation(method=True)
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return ``tensor_split`` of dimension 0 of at least 2 dimensions. Errors: those of ``hsplit``."""
    return _equally("vsplit", input, indices_or_sections, 0, 2)


@operation(method=True)
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return ``tensor_split`` of dimension 2 of at least 3 dimensions. Errors: those of ``hsplit``."""
    return _equally("dsplit", input, indices_or_sections, 2, 3)


def _equally(name: str, input: Tensor, sections: Any, dim: int, least: int) -> tuple[Tensor, ...]:
    if input.ndim < least:
        raise ValueError(f"{name}() needs at least {least} dimensions, and the shape is {input.shape}")
    if isinstance(sections, int) and (sections <= 0 or input.shape[dim] % sections):
        raise ValueError(f"{name}() cannot split length {input.shape[dim]} into {sections} equal parts")
    return tensor_split(input, sections, dim)


@operation(method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of the slices of dimension ``dim``; they have one dimension less than ``input``.

    Raises:
        IndexError: there is no such dimension, or ``input`` is 0-d.
    """
    if not input._array.ndim:
        raise IndexError("a 0-d tensor has nothing to unbind")
    axis, length = _length("unbind", input, dim)
    before = (FULL,) * axis
    return _parts(_UNBIND, input, [(*before, index) for index in range(length)])


@operation(method=True)
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return a view of the slices ``start`` to ``start + length - 1`` of dimension ``dim``.

    Args:
        input: at least 1-d, any dtype.
        dim: the dimension; negative ones count from the end.
        start: the first slice; negative ones count from the end.
        length: number of slices.

    Raises:
        IndexError: there is no such dimension, or ``start`` is out of range.
        ValueError: the slices reach beyond the end, or ``length`` is negative.
    """
    axis, size = _length("narrow", input, dim)
    first = int(start)
    if not -size <= first <= size:
        raise IndexError(f"narrow() start {first} is out of range for dimension {axis} of size {size}")
    first += size if first < 0 else 0
    if length < 0 or first + length > size:
        raise ValueError(f"narrow() cannot take {length} from {first} on in dimension {axis} of size {size}")
    return part(input, (FULL,) * axis + (slice(first, first + length),))


def _cut(input: Tensor, axis: int, bounds: Sequence[int]) -> tuple[Tensor, ...]:
    before = (FULL,) * axis
    return _parts(_SPLIT, input, [(*before, slice(start, end)) for start, end in itertools.pairwise(bounds)])


def _length(name: str, input: Tensor, dim: int) -> tuple[int, int]:
    shape = input._array.shape
    if not shape:
        raise ValueError(f"{name}() needs a tensor with dimensions, and this one is 0-d")
    axis = one_dim(dim, len(shape))
    return axis, shape[axis]
