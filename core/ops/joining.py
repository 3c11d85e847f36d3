"""Putting tensors together and taking them apart."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..autograd.grad_mode import is_grad_enabled
from ..autograd.node import Edges
from ..dtypes import result_type
from ..tensor import Tensor
from ..types import Array
from .dims import one_dim
from .indexing import getitem
from .operation import operation
from .shaping import unsqueeze
from .table import Row, record

__all__ = [
    "cat",
    "chunk",
    "split",
    "stack",
    "unbind",
]
# What of these are methods of tensors too.
METHODS = (
    "chunk",
    "split",
    "unbind",
)


def _cut(xp: SimpleNamespace, grad: Any, arguments: Sequence[Any], edges: Edges) -> list[Any]:
    # The gradient is cut where the inputs met.
    dim, offsets, dtypes = arguments
    parts = ((slice(None),) * dim + (slice(start, end),) for start, end in itertools.pairwise(offsets))
    return [
        None if edge is None else xp.cast(xp.get(grad, part), dtype) for edge, part, dtype in zip(edges, parts, dtypes)
    ]


_CAT = Row("cat", pull=_cut)


@operation
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after the other along ``dim``.

    Raises:
        ValueError: none were given, or their shapes differ beside ``dim``.
    """
    parts = list(tensors)
    if not parts:
        raise ValueError("cat() needs at least one tensor")
    arrays, parts = _alike(parts)
    axis = one_dim(dim, arrays[0].ndim)
    try:
        result = Tensor(np.concatenate(arrays, axis))
    except ValueError:
        raise ValueError(f"cat() along dim {dim} cannot join shapes {[array.shape for array in arrays]}") from None
    if is_grad_enabled() and any(part._requires_grad for part in parts):
        offsets = tuple(itertools.accumulate((array.shape[axis] for array in arrays), initial=0))
        record(_CAT, result, parts, (), axis, offsets, [part.dtype for part in parts])
    return result


@operation
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors, of one shape, side by side along a new dimension ``dim``.

    Raises:
        ValueError: none were given, or the shapes differ.
    """
    parts = list(tensors)
    if len({part.shape for part in parts}) != 1:
        raise ValueError(f"stack() needs tensors of one shape, and you gave {[part.shape for part in parts]}")
    return cat([unsqueeze(part, dim) for part in parts], one_dim(dim, parts[0].ndim + 1))


@operation
def split(a: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts along ``dim``: of ``split_size`` each (the last may be smaller), or of those sizes.

    Raises:
        ValueError: the sizes do not add up, or are not positive.
    """
    axis = one_dim(dim, a.ndim)
    length = a.shape[axis]
    if isinstance(split_size, int):
        if split_size <= 0:
            raise ValueError(f"split() needs a positive size, and you gave {split_size}")
        sizes = [min(split_size, length - start) for start in range(0, max(length, 1), split_size)]
    else:
        sizes = list(split_size)
        if sum(sizes) != length or min(sizes, default=0) < 0:
            raise ValueError(f"split() sizes {sizes} do not add up to {length}, the length of dim {dim}")
    offsets = itertools.accumulate(sizes, initial=0)
    return tuple(
        getitem(a, (slice(None),) * axis + (slice(start, start + size),)) for start, size in zip(offsets, sizes)
    )


@operation
def chunk(a: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` views of equal parts along ``dim``; the last may be smaller.

    Raises:
        ValueError: ``chunks`` is not positive.
    """
    if chunks <= 0:
        raise ValueError(f"chunk() needs a positive number of chunks, and you gave {chunks}")
    length = a.shape[one_dim(dim, a.ndim)]
    return split(a, max(-(-length // chunks), 1), dim)


@operation
def unbind(a: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of the slices along ``dim``, which they lack."""
    axis = one_dim(dim, a.ndim)
    return tuple(getitem(a, (slice(None),) * axis + (index,)) for index in range(a.shape[axis]))


def _alike(parts: list[Tensor]) -> tuple[list[Array], list[Tensor]]:
    # PyTorch lets an empty vector join anything; programs build lists up from torch.empty(0).
    full = [part for part in parts if part.shape != (0,)] or parts[:1]
    dtype = result_type(*parts)
    return [part._array.astype(dtype, copy=False) for part in full], full
