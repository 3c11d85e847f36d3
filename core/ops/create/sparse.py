"""Conversion between layouts: sparse tensors from indices and values or from dense tensors, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...devices import check_device
from ...dtypes import get_default_dtype
from ...shapes import to_shape
from ...tensors import Tensor
from ...types import Array
from ..index.indexing import getitem
from ..table.operation import operation, published
from .from_data import as_tensor

if TYPE_CHECKING:
    from ...sparse import SparseTensor


@published(function=True)
def sparse_coo_tensor(
    indices: Any,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Return a sparse tensor: ``values[n]`` at ``indices[:, n]``, and zeros elsewhere.

    Args:
        indices: integers, shape ``(sparse dimensions, n)``. Values with equal indices are added.
        values: shape ``(n, *dense dimensions)``. Without values, ``indices`` is the size, and the tensor is all zeros.
        size: the shape; by default the smallest one that holds all indices.
        dtype: dtype of the result; that of ``values`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
        check_invariants: has no effect: indices are always checked.
        is_coalesced: whether the indices are sorted and unique; this is not checked.

    Raises:
        ValueError: the shapes do not fit, or an index is outside ``size``.
        TypeError: the indices are not integers.
    """
    from ...sparse import SparseTensor

    check_device(device)
    if values is None:
        shape = to_shape((indices,))
        elements = Tensor(np.zeros(0, dtype or get_default_dtype()))
        empty = SparseTensor(np.zeros((len(shape), 0), np.int64), elements, shape, coalesced=True)
        return empty.requires_grad_() if requires_grad else empty
    indices = _index_array(indices)
    elements = as_tensor(values, dtype)
    if elements.ndim < 1 or len(elements) != indices.shape[1]:
        raise ValueError(
            f"sparse_coo_tensor() needs a value for each of the {indices.shape[1]} indices, (n, ...), and the values have "
            f"shape {elements.shape}"
        )
    shape = _least_size(indices, elements) if size is None else to_shape((size,))
    _check_indices(indices, elements, shape)
    result = SparseTensor(indices, elements, shape, bool(is_coalesced))
    return result.detach().requires_grad_() if requires_grad else result


def _index_array(indices: Any) -> Array:
    array = np.asarray(indices._array if isinstance(indices, Tensor) else indices)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"sparse_coo_tensor() needs indices of integers, and you gave {array.dtype}")
    if array.ndim != 2:
        raise ValueError(
            f"sparse_coo_tensor() needs indices of shape (sparse dimensions, n), and yours have shape {array.shape}"
        )
    return array.astype(np.int64, copy=False)


def _least_size(indices: Array, elements: Tensor) -> tuple[int, ...]:
    lengths = (indices.max(1) + 1).tolist() if indices.size else [0] * len(indices)
    return (*lengths, *elements.shape[1:])


def _check_indices(indices: Array, elements: Tensor, shape: tuple[int, ...]) -> None:
    sparse = len(indices)
    if len(shape) != sparse + elements.ndim - 1 or shape[sparse:] != elements.shape[1:]:
        raise ValueError(
            f"{sparse} rows of indices and values of shape {elements.shape} make a tensor of shape "
            f"({', '.join('?' * sparse)}, *{elements.shape[1:]}), not {shape}"
        )
    outside = (indices < 0) | (indices >= np.array(shape[:sparse], np.int64)[:, None])
    if outside.any():
        where = indices[:, outside.any(0).argmax()].tolist()
        raise ValueError(f"the index {where} is outside a tensor of shape {shape}")


@operation(function=False, method=True)
def to_sparse(input: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """Return the elements that are not zero as a sparse tensor; differentiable.

    Args:
        input: any tensor.
        sparse_dim: number of leading dimensions that become sparse, all by default; the others are stored as dense blocks.

    Raises:
        ValueError: ``sparse_dim`` is negative or greater than the number of dimensions.
    """
    from ...sparse import SparseTensor

    array = input._array
    count = array.ndim if sparse_dim is None else sparse_dim
    if not 0 <= count <= array.ndim:
        raise ValueError(f"sparse_dim must be from 0 to {array.ndim}, and you gave {sparse_dim}")
    present = (array != 0).any(axis=tuple(range(count, array.ndim)))
    indices = np.array(np.nonzero(present), np.int64) if count else np.zeros((0, int(present)), np.int64)
    # Without sparse dimensions there is one block, the tensor itself.
    elements = getitem(input, tuple(indices)) if count else getitem(input, None)[: int(present)]
    return SparseTensor(indices, elements, array.shape, coalesced=True)


@published(function=False, method=True)
def to_dense(input: Tensor, dtype: npt.DTypeLike | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return a sparse tensor with all its elements stored; a dense tensor is returned itself.

    Args:
        input: a dense or sparse tensor.
        dtype: dtype of the result; that of ``input`` if ``None``.
        masked_grad: has no effect.
    """
    return input if dtype is None else input.to(dtype)
