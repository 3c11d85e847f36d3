"""Joining of tensors: ``cat``, ``stack``, ``hstack``, ``vstack``, ``dstack``, ``column_stack``, ``block_diag``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...autograd.grad_mode import is_grad_enabled
from ...autograd.node import Edges
from ...dtypes import get_default_dtype, result_type
from ...tensors import Tensor
from ...types import Array, DType
from ..table.dims import one_dim
from ..table.nodes import record, records
from ..table.operation import operation, published
from ..table.rows import Row
from .reshaping import atleast_1d, atleast_2d, atleast_3d, reshape

Tensors = Sequence[Tensor]


def _cut(xp: Any, grad: Any, edges: Edges, indices: Iterable[Any], dtypes: Any) -> list[Any]:
    # Each input's gradient is its part of the result's.
    parts = [None if edge is None else xp.get(grad, index) for edge, index in zip(edges, indices)]
    if dtypes is None:  # no input was converted
        return parts
    return [None if part is None else xp.cast(part, dtype) for part, dtype in zip(parts, dtypes)]


def _cut_cat(xp: Any, grad: Any, arguments: Sequence[Any], edges: Edges) -> list[Any]:
    axis, lengths, dtypes = arguments
    before, ends = (slice(None),) * axis, itertools.accumulate(lengths)
    return _cut(xp, grad, edges, ((*before, slice(end - n, end)) for n, end in zip(lengths, ends)), dtypes)


def _cut_stack(xp: Any, grad: Any, arguments: Sequence[Any], edges: Edges) -> list[Any]:
    axis, dtypes = arguments
    before = (slice(None),) * axis
    return _cut(xp, grad, edges, ((*before, number) for number in range(len(edges))), dtypes)


def _cut_blocks(xp: Any, grad: Any, arguments: Sequence[Any], edges: Edges) -> list[Any]:
    return _cut(xp, grad, edges, *arguments)


_CAT = Row("cat", pull=_cut_cat, holomorphic=False)
_STACK = Row("stack", pull=_cut_stack, holomorphic=False)
_BLOCKS = Row("block_diag", pull=_cut_blocks, holomorphic=False)


@operation(function=True, synonyms=("concat", "concatenate"))
def cat(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the tensors joined in dimension ``dim``; vectors of shape ``(0,)`` are left out.

    Args:
        tensors: a sequence of tensors whose shapes differ in ``dim`` only, converted to one dtype.
        dim: the dimension to join along.
        out: where the result is written.

    Raises:
        IndexError: there is no such dimension.
        ValueError: there are no tensors, or their shapes differ in other dimensions than ``dim``.
    """
    parts = tensors if type(tensors) is list else list(tensors)
    if not parts:
        raise ValueError("cat() needs at least one tensor")
    arrays, parts = _alike(parts)
    axis = one_dim(dim, arrays[0].ndim)
    if not arrays[0].ndim:
        raise ValueError("cat() cannot join 0-d tensors; use stack()")
    try:
        result = Tensor(np.concatenate(arrays, axis))
    except ValueError:
        raise ValueError(
            f"cat() along dim {dim} cannot join shapes {', '.join(str(array.shape) for array in arrays)}: "
            "they must be equal in all other dimensions"
        ) from None
    if is_grad_enabled() and True in [part._requires_grad for part in parts]:
        record(_CAT, result, parts, (), axis, [array.shape[axis] for array in arrays], _converted(parts, result))
    return result


@operation(function=True)
def stack(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the tensors joined in a new dimension, of the length of ``tensors``.

    Args:
        tensors: a sequence of tensors of one shape, converted to one dtype.
        dim: the position of the new dimension in the result.
        out: where the result is written.

    Raises:
        IndexError: there is no such position.
        ValueError: there are no tensors, or their shapes differ.
    """
    parts = tensors if type(tensors) is list else list(tensors)
    if not parts:
        raise ValueError("stack() needs at least one tensor")
    arrays = [part._array for part in parts]
    shape, dtype = arrays[0].shape, arrays[0].dtype
    axis = one_dim(dim, len(shape) + 1)
    for number, array in enumerate(arrays):
        if array.shape != shape:
            raise ValueError(
                f"stack() needs tensors of one shape, and you gave {shape} and, at {number}, {array.shape}"
            )
        if array.dtype is not dtype:
            wanted = result_type(*parts)
            arrays = [array.astype(wanted, copy=False) for array in arrays]
            break
    longer = (*shape[:axis], 1, *shape[axis:])
    result = Tensor(np.concatenate([array.reshape(longer) for array in arrays], axis))
    if is_grad_enabled() and True in [part._requires_grad for part in parts]:
        record(_STACK, result, parts, (), axis, _converted(parts, result))
    return result


def _converted(parts: Tensors, result: Tensor) -> list[DType] | None:
    """Return the dtypes of the parts, or ``None`` if all are the result's."""
    dtype = result._array.dtype
    dtypes = [part._array.dtype for part in parts]
    return dtypes if [each for each in dtypes if each is not dtype] else None


def _alike(parts: list[Tensor]) -> tuple[list[Array], list[Tensor]]:
    arrays = [part._array for part in parts]
    dtype, ndim = arrays[0].dtype, arrays[0].ndim
    for array in arrays:
        if array.dtype is not dtype or array.ndim != ndim or array.shape == (0,):
            break
    else:
        return arrays, parts
    # As in PyTorch, a vector without elements joins tensors of any shape: programs start lists with torch.empty(0).
    full = [part for part in parts if part.shape != (0,)] or parts[:1]
    wanted = result_type(*parts)
    return [part._array.astype(wanted, copy=False) for part in full], full


@operation(function=True)
def hstack(tensors: Tensors) -> Tensor:
    """Return the tensors joined in dimension 1, or 0 for vectors. Errors: those of ``cat``."""
    parts = [atleast_1d(tensor) for tensor in tensors]
    return cat(parts, 0 if not parts or parts[0].ndim == 1 else 1)


@operation(function=True, synonyms=("row_stack",))
def vstack(tensors: Tensors) -> Tensor:
    """Return the tensors joined in dimension 0, vectors as rows ``(1, n)``. Errors: those of ``cat``."""
    return cat([atleast_2d(tensor) for tensor in tensors], 0)


@operation(function=True)
def dstack(tensors: Tensors) -> Tensor:
    """Return the tensors joined in dimension 2, made 3-d by ``atleast_3d`` before. Errors: those of ``cat``."""
    return cat([atleast_3d(tensor) for tensor in tensors], 2)


@operation(function=True)
def column_stack(tensors: Tensors) -> Tensor:
    """Return the tensors joined in dimension 1, vectors as columns ``(n, 1)``. Errors: those of ``cat``."""
    return cat([tensor if tensor.ndim >= 2 else reshape(tensor, (-1, 1)) for tensor in tensors], 1)


@published(function=True)
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given matrices on its diagonal and zeros elsewhere; vectors count as rows.

    Raises:
        ValueError: a tensor has more than two dimensions.
    """
    if not tensors:
        return Tensor(np.zeros((1, 0), get_default_dtype()))
    for tensor in tensors:
        if tensor.ndim > 2:
            raise ValueError(f"block_diag() takes matrices, and you gave shape {tensor.shape}")
    blocks = [atleast_2d(tensor) for tensor in tensors]
    bottoms, rights = (list(itertools.accumulate(block.shape[axis] for block in blocks)) for axis in (0, 1))
    where = [
        (slice(bottom - block.shape[0], bottom), slice(right - block.shape[1], right))
        for block, bottom, right in zip(blocks, bottoms, rights)
    ]
    result = Tensor(np.zeros((bottoms[-1], rights[-1]), result_type(*blocks)))
    for block, region in zip(blocks, where):
        result._array[region] = block._array
    if records(*blocks):
        record(_BLOCKS, result, blocks, (), where, _converted(blocks, result))
    return result
