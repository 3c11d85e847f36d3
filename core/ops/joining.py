"""Tensors put together: ``cat``, ``stack`` and their kin."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..autograd.grad_mode import is_grad_enabled
from ..autograd.graph import gradient_edge
from ..dtypes import result_type
from ..tensor import Tensor
from ..types import Array
from .dims import one_dim
from .operation import delivered, operation
from .shaping import atleast_1d, atleast_2d, atleast_3d, reshape
from .table import ARRAYS, TENSORS, OpNode, Row

__all__ = [
    "block_diag",
    "cat",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "row_stack",
    "stack",
    "vstack",
]
METHODS = ()

Tensors = Sequence[Tensor]


class JoinNode(OpNode):
    """The node of ``cat`` and ``stack``, which has as many inputs as it was given."""

    __slots__ = ()

    def apply(self, grads: Sequence[Any]) -> list[Any]:
        """Cut the gradient where the inputs met."""
        return self._cut(ARRAYS, grads[0])

    def apply_graph(self, grads: Sequence[Any]) -> list[Any]:
        """The same on tensors."""
        return self._cut(TENSORS, grads[0])

    def _cut(self, xp: SimpleNamespace, grad: Any) -> list[Any]:
        indices, dtypes = self.params
        return [
            None if edge is None else xp.cast(xp.get(grad, index), dtype)
            for edge, index, dtype in zip(self.next_edges, indices, dtypes)
        ]


_CAT, _STACK = Row("cat"), Row("stack")


@operation
def cat(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after the other along ``dim``; vectors of no elements are left out.

    Raises:
        IndexError: there is no such dimension.
        ValueError: none were given, or their shapes differ beside ``dim``.
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
    if is_grad_enabled() and any([part._requires_grad for part in parts]):
        offsets = tuple(itertools.accumulate([array.shape[axis] for array in arrays], initial=0))
        before = (slice(None),) * axis
        _join(_CAT, result, parts, [(*before, slice(start, end)) for start, end in zip(offsets, offsets[1:])])
    return result if out is None else delivered("cat", result, out)


@operation
def concat(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """``cat`` under another name."""
    return cat(tensors, dim, out=out)


@operation
def concatenate(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """``cat`` under NumPy's name."""
    return cat(tensors, dim, out=out)


@operation
def stack(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors, of one shape, side by side along a new dimension ``dim``.

    Raises:
        IndexError: there is no such place.
        ValueError: none were given, or the shapes differ.
    """
    parts = tensors if type(tensors) is list else list(tensors)
    if not parts:
        raise ValueError("stack() needs at least one tensor")
    arrays = [part._array for part in parts]
    shape, dtype = arrays[0].shape, arrays[0].dtype
    axis = one_dim(dim, len(shape) + 1)
    for place, array in enumerate(arrays):
        if array.shape != shape:
            raise ValueError(f"stack() needs tensors of one shape, and you gave {shape} and, at {place}, {array.shape}")
        if array.dtype is not dtype:
            wanted = result_type(*parts)
            arrays = [array.astype(wanted, copy=False) for array in arrays]
            break
    longer = (*shape[:axis], 1, *shape[axis:])
    result = Tensor(np.concatenate([array.reshape(longer) for array in arrays], axis))
    if is_grad_enabled() and any([part._requires_grad for part in parts]):
        before = (slice(None),) * axis
        _join(_STACK, result, parts, [(*before, place) for place in range(len(parts))])
    return result if out is None else delivered("stack", result, out)


def _join(row: Row, result: Tensor, parts: Tensors, indices: list[tuple[Any, ...]]) -> None:
    edges = tuple([gradient_edge(part) for part in parts])
    result._edge = (JoinNode(row, edges, (), (indices, [part._array.dtype for part in parts])), 0)
    result._requires_grad = True


def _alike(parts: list[Tensor]) -> tuple[list[Array], list[Tensor]]:
    arrays = [part._array for part in parts]
    dtype, ndim = arrays[0].dtype, arrays[0].ndim
    for array in arrays:
        if array.dtype is not dtype or array.ndim != ndim or array.shape == (0,):
            break
    else:
        return arrays, parts
    # PyTorch lets an empty vector join anything; programs build lists up from torch.empty(0).
    full = [part for part in parts if part.shape != (0,)] or parts[:1]
    wanted = result_type(*parts)
    return [part._array.astype(wanted, copy=False) for part in full], full


@operation
def hstack(tensors: Tensors) -> Tensor:
    """Side by side: along dimension 0 for vectors, else along dimension 1. Errors: those of ``cat``."""
    parts = atleast_1d(*tensors) if len(tensors) > 1 else (atleast_1d(*tensors),)
    return cat(list(parts), 0 if parts[0].ndim == 1 else 1)


@operation
def vstack(tensors: Tensors) -> Tensor:
    """One below the other along dimension 0, vectors as rows. Errors: those of ``cat``."""
    return cat([atleast_2d(tensor) for tensor in tensors], 0)


@operation
def row_stack(tensors: Tensors) -> Tensor:
    """``vstack`` under another name."""
    return vstack(tensors)


@operation
def dstack(tensors: Tensors) -> Tensor:
    """One behind the other along dimension 2. Errors: those of ``cat``."""
    return cat([atleast_3d(tensor) for tensor in tensors], 2)


@operation
def column_stack(tensors: Tensors) -> Tensor:
    """Side by side along dimension 1, vectors as columns. Errors: those of ``cat``."""
    return cat([tensor if tensor.ndim >= 2 else reshape(tensor, (-1, 1)) for tensor in tensors], 1)


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the matrices along its diagonal and zeros elsewhere; vectors are rows.

    Raises:
        ValueError: a tensor has more than two dimensions.
    """
    for tensor in tensors:
        if tensor.ndim > 2:
            raise ValueError(f"block_diag() takes matrices, and you gave shape {tensor.shape}")
    from .padding import pad

    blocks = [atleast_2d(tensor) for tensor in tensors]
    widths = [block.shape[1] for block in blocks]
    starts = list(itertools.accumulate(widths, initial=0))
    return cat([pad(block, (start, starts[-1] - end)) for block, start, end in zip(blocks, starts, starts[1:])])
