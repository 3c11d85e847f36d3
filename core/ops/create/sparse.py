"""From one layout to another: sparse tensors made of indices and values, or of dense tensors, and back."""

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

# What of these are methods of tensors too.


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
    """Return a tensor of which only some elements are stored: ``values[n]`` stands at ``indices[:, n]``, zeros elsewhere.

    Args:
        indices: integers, (sparse dimensions, n). A place that is named twice gets both values.
        values: (n, *dense dimensions). Without them, ``indices`` is the size, and nothing is stored.
        size: the shape; by default the smallest that holds everything.
        dtype: of the values; by default theirs.
        device: ``"cpu"``.
        requires_grad: whether operations on it are recorded.
        check_invariants: has no meaning: places are always checked.
        is_coalesced: say so if each place is named once, and in order; this is not checked.

    Raises:
        ValueError: shapes do not fit, or a place is outside ``size``.
        TypeError: indices are not integers.
    """
    from ...sparse import SparseTensor

    check_device(device)
    if values is None:
        shape = to_shape((indices,))
        elements = Tensor(np.zeros(0, dtype or get_default_dtype()), requires_grad)
        return SparseTensor(np.zeros((len(shape), 0), np.int64), elements, shape, coalesced=True)
    places = _places(indices)
    elements = as_tensor(values, dtype)
    if elements.ndim < 1 or len(elements) != places.shape[1]:
        raise ValueError(
            f"sparse_coo_tensor() needs a value for each of the {places.shape[1]} places, (n, ...), and the values have "
            f"shape {elements.shape}"
        )
    shape = _least_size(places, elements) if size is None else to_shape((size,))
    _check_places(places, elements, shape)
    result = SparseTensor(places, elements, shape, bool(is_coalesced))
    return result.detach().requires_grad_() if requires_grad else result


def _places(indices: Any) -> Array:
    array = np.asarray(indices._array if isinstance(indices, Tensor) else indices)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"sparse_coo_tensor() needs indices of integers, and you gave {array.dtype}")
    if array.ndim != 2:
        raise ValueError(
            f"sparse_coo_tensor() needs indices of shape (sparse dimensions, n), and yours have shape {array.shape}"
        )
    return array.astype(np.int64, copy=False)


def _least_size(places: Array, elements: Tensor) -> tuple[int, ...]:
    lengths = (places.max(1) + 1).tolist() if places.size else [0] * len(places)
    return (*lengths, *elements.shape[1:])


def _check_places(places: Array, elements: Tensor, shape: tuple[int, ...]) -> None:
    sparse = len(places)
    if len(shape) != sparse + elements.ndim - 1 or shape[sparse:] != elements.shape[1:]:
        raise ValueError(
            f"{sparse} rows of indices and values of shape {elements.shape} make a tensor of shape "
            f"({', '.join('?' * sparse)}, *{elements.shape[1:]}), not {shape}"
        )
    outside = (places < 0) | (places >= np.array(shape[:sparse], np.int64)[:, None])
    if outside.any():
        where = places[:, outside.any(0).argmax()].tolist()
        raise ValueError(f"the place {where} is outside a tensor of shape {shape}")


@operation(function=False, method=True)
def to_sparse(input: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """Return the elements that are not zero as a sparse tensor, through which gradients flow.

    Args:
        input: any tensor.
        sparse_dim: how many of its first dimensions are to be sparse, by default all; of the others whole blocks are kept.

    Raises:
        ValueError: there are not that many dimensions.
    """
    from ...sparse import SparseTensor

    array = input._array
    count = array.ndim if sparse_dim is None else sparse_dim
    if not 0 <= count <= array.ndim:
        raise ValueError(f"sparse_dim must be from 0 to {array.ndim}, and you gave {sparse_dim}")
    present = (array != 0).any(axis=tuple(range(count, array.ndim)))
    places = np.array(np.nonzero(present), np.int64) if count else np.zeros((0, int(present)), np.int64)
    # Without sparse dimensions there is one block, the tensor itself.
    elements = getitem(input, tuple(places)) if count else getitem(input, None)[: int(present)]
    return SparseTensor(places, elements, array.shape, coalesced=True)


@published(function=False, method=True)
def to_dense(input: Tensor, dtype: npt.DTypeLike | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return this tensor, in ``dtype`` if that is given; of a sparse one, all elements, zeros too.

    Args:
        input: a dense or sparse tensor.
        dtype: dtype of the result; that of ``input`` if ``None``.
        masked_grad: has no effect.
    """
    return input if dtype is None else input.to(dtype)
