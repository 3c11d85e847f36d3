"""``cat`` and ``stack`` of sparse tensors, along their sparse dimensions: sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ops.shape import joining
from ..types import Array
from .tensor import SparseTensor


def cat(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> SparseTensor:
    """Return sparse tensors joined in a sparse dimension.

    Args:
        tensors: sparse tensors whose shapes differ in ``dim`` only, with the same dimensions sparse.
        dim: the dimension to join along, a sparse one.
        out: must be ``None``: sparse tensors have no ``out=``.

    Raises:
        TypeError: one is dense, or ``out`` is given.
        ValueError: the shapes or sparse dimensions do not fit.
        IndexError: there is no such sparse dimension.
    """
    parts, axis = _parts("cat", tensors, dim, 0, out)
    first = parts[0]
    for part in parts:
        if part.sparse_dim() != first.sparse_dim() or _without(part.shape, axis) != _without(first.shape, axis):
            raise ValueError(
                f"cat() along dim {dim} cannot join sparse shapes {', '.join(str(part.shape) for part in parts)}: they must "
                f"be equal in all other dimensions, and have the same ones sparse"
            )
    ends = np.cumsum([part.shape[axis] for part in parts])
    moved = [_moved(part._places, axis, int(end) - part.shape[axis]) for part, end in zip(parts, ends)]
    shape = (*first.shape[:axis], int(ends[-1]), *first.shape[axis + 1 :])
    return SparseTensor(np.concatenate(moved, 1), joining.cat([part._elements for part in parts]), shape)


def stack(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> SparseTensor:
    """Return sparse tensors joined in a new sparse dimension.

    Args:
        tensors: sparse tensors of one shape, with the same dimensions sparse.
        dim: the position of the new dimension, among the sparse ones or after the last of them.
        out: must be ``None``: sparse tensors have no ``out=``.

    Raises:
        TypeError: one is dense, or ``out`` is given.
        ValueError: the shapes or sparse dimensions differ.
        IndexError: there is no such position.
    """
    parts, axis = _parts("stack", tensors, dim, 1, out)
    first = parts[0]
    if any(part.shape != first.shape or part.sparse_dim() != first.sparse_dim() for part in parts):
        raise ValueError(
            f"stack() needs sparse tensors of one shape with the same dimensions sparse, and you gave "
            f"{', '.join(str(part.shape) for part in parts)}"
        )
    longer = [
        SparseTensor(np.insert(part._places, axis, 0, 0), part._elements, (*part.shape[:axis], 1, *part.shape[axis:]))
        for part in parts
    ]
    return cat(longer, axis)


def _parts(name: str, tensors: Sequence[Any], dim: int, more: int, out: Any) -> tuple[list[SparseTensor], int]:
    parts = list(tensors)
    if out is not None:
        raise TypeError(f"{name}() of sparse tensors has no out=")
    if not all(isinstance(part, SparseTensor) for part in parts):
        raise TypeError(f"{name}() joins sparse tensors with sparse ones only; call to_dense() on some, or to_sparse()")
    dims, length = parts[0].ndim + more, parts[0].sparse_dim() + more
    axis = dim % dims if -dims <= dim < dims else dims
    if axis >= length:
        raise IndexError(
            f"{name}() of sparse tensors joins along a sparse dimension, 0 to {length - 1} here, and you gave {dim}; call "
            f"to_dense() first"
        )
    return parts, axis


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _moved(places: Array, axis: int, by: int) -> Array:
    moved = places.copy()
    moved[axis] += by
    return moved
