"""Reading and writing parts of a tensor: ``t[index]``, ``t[index] = value``, ``gather``, ``where``, ``embedding``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd.grad_mode import is_grad_enabled
from ..autograd.graph import gradient_edge
from ..creation import as_tensor
from ..dtypes import result_type
from ..tensor import Tensor
from ..types import Array, Operand
from .dims import one_dim
from .inplace import inplace
from .namespaces import is_basic
from .operation import operation
from .table import OpNode, Row, record, records
from .views import changed, check_writable, view_of

__all__ = [
    "embedding",
    "gather",
    "index_select",
    "masked_fill",
    "masked_select",
    "where",
]
# What of these are methods of tensors too.
METHODS = (
    "gather",
    "index_select",
    "masked_fill",
    "masked_select",
)

_GET = Row("index", lambda xp, g, shape, index: xp.scatter(shape, index, g), view=lambda x, index: x[index])
_SET = Row(
    "set_item",
    lambda xp, g, index, shape, dtype: xp.masked(g, index),
    lambda xp, g, index, shape, dtype: xp.fit(xp.get(g, index), shape, dtype),
)
_GATHER = Row("gather", lambda xp, g, shape, dim, index: xp.put_along(shape, dim, index, g))
_EMBEDDING = Row("embedding", lambda xp, g, shape, rows: xp.add_rows(shape, rows, g))
_WHERE = Row(
    "where",
    lambda xp, g, condition, a, b: xp.fit(g * condition, *a),
    lambda xp, g, condition, a, b: xp.fit(g * ~condition, *b),
)


@operation
def getitem(a: Tensor, index: Any) -> Tensor:
    """``a[index]`` with NumPy's meaning: a view for integers and slices, a copy for tensors, lists and masks.

    Raises:
        IndexError: the index is out of range, or of a kind that cannot index.
    """
    index = _to_index(index)
    x = a._array
    out = x[index]
    if is_basic(index):
        # With "..." an element comes as a 0-d view; without, as a scalar, which is a copy.
        if type(out) is not np.ndarray:
            index = (*index, Ellipsis) if isinstance(index, tuple) else (index, Ellipsis)
            out = x[index]
        return view_of(a, out, _GET, (index,), (x.shape, index))
    result = Tensor(out)
    return record(_GET, result, (a,), (), x.shape, index) if records(a) else result


@operation
def setitem(a: Tensor, index: Any, value: Operand) -> None:
    """``a[index] = value``, recorded.

    Raises:
        AutogradError: ``a`` is a leaf that requires grad.
        IndexError: the index is out of range.
        ValueError: the shape of ``value`` cannot be broadcast to that of ``a[index]``.
        TypeError: ``value`` is of a higher category of dtypes.
    """
    index = _to_index(index)
    source = value._array if isinstance(value, Tensor) else np.asarray(value)
    recording = is_grad_enabled() and (a._requires_grad or (isinstance(value, Tensor) and value._requires_grad))
    if recording:
        check_writable(a)
    if isinstance(value, Tensor) and a.dtype.kind in "biu" and source.dtype.kind in "fc":
        raise TypeError(
            f"you cannot assign {source.dtype} values into a tensor of {a.dtype}; convert one of them first"
        )
    # History first: the edge must be the old value's.
    edge = None
    if recording:
        value_edge = gradient_edge(value) if isinstance(value, Tensor) else None
        node = OpNode(_SET, (gradient_edge(a), value_edge), (), (index, source.shape, source.dtype))
        edge = (node, 0)
    a._array[index] = source
    changed(a, edge)


@operation
def index_select(a: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of ``a`` along ``dim`` that the 1-d integer tensor ``index`` names."""
    dim = one_dim(dim, a.ndim)
    _integers("index_select", index)
    return getitem(a, (slice(None),) * dim + (index,))


@operation
def gather(a: Tensor, dim: int, index: Tensor) -> Tensor:
    """``out[i, j] = a[index[i, j], j]`` for ``dim`` 0, and so on; the result has the shape of ``index``.

    Raises:
        IndexError: an index is out of range.
        ValueError: ``index`` has another number of dimensions, or is longer than ``a`` beside ``dim``.
    """
    x, places = a._array, _integers("gather", index)
    dim = one_dim(dim, x.ndim)
    if places.ndim != x.ndim or any(n > m for i, (n, m) in enumerate(zip(places.shape, x.shape)) if i != dim):
        raise ValueError(f"gather() cannot read shape {x.shape} along dim {dim} with an index of shape {places.shape}")
    if places.size and (places.min() < 0 or places.max() >= (x.shape[dim] if x.ndim else 1)):
        raise IndexError(f"gather() got an index outside 0..{x.shape[dim] - 1 if x.ndim else 0}")
    result = Tensor(x[along(places, dim)] if x.ndim else x.copy())
    return record(_GATHER, result, (a,), (), x.shape, dim, places) if records(a) else result


def along(places: Array, dim: int) -> tuple[Any, ...]:
    """The NumPy index that reads at ``places`` along ``dim`` and at the same place in the other dimensions."""
    where: list[Any] = list(np.indices(places.shape, sparse=True))
    where[dim] = places
    return tuple(where)


@operation
def embedding(weight: Tensor, rows: Tensor) -> Tensor:
    """The rows of the matrix ``weight`` that ``rows``, an integer tensor of any shape, names.

    Raises:
        IndexError: a row is out of range.
    """
    places, table = _integers("embedding", rows), weight._array
    if places.size and (places.min() < 0 or places.max() >= table.shape[0]):
        raise IndexError(f"embedding() got a row outside 0..{table.shape[0] - 1}")
    result = Tensor(table[places])
    return record(_EMBEDDING, result, (weight,), (), table.shape, places) if records(weight) else result


@operation
def where(condition: Tensor, a: Operand | None = None, b: Operand | None = None) -> Any:
    """``a`` where ``condition`` is true and ``b`` elsewhere, broadcast; with ``condition`` alone, its true indices."""
    mask = condition._array if isinstance(condition, Tensor) else np.asarray(condition)
    if a is None or b is None:
        return tuple(Tensor(part) for part in np.nonzero(mask))
    dtype = result_type(a, b)
    first, second = (
        as_tensor(a, None if isinstance(a, Tensor) else dtype),
        as_tensor(b, None if isinstance(b, Tensor) else dtype),
    )
    mask = mask.astype(bool, copy=False)
    result = Tensor(np.where(mask, first._array.astype(dtype, copy=False), second._array.astype(dtype, copy=False)))
    if records(first, second):
        shapes = ((first.shape, first.dtype), (second.shape, second.dtype))
        record(_WHERE, result, (first, second), (), mask, *shapes)
    return result


@operation
def masked_fill(a: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """``a`` with ``value`` where ``mask`` is true."""
    filler = value if isinstance(value, Tensor) else as_tensor(value, a.dtype)
    return where(mask, filler, a)  # type: ignore[no-any-return]


@operation
def masked_select(a: Tensor, mask: Tensor) -> Tensor:
    """The elements of ``a`` where ``mask`` is true, as a vector."""
    return getitem(a, mask)


def _to_index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_one(part) for part in index)
    return _one(index)


def _one(part: Any) -> Any:
    if isinstance(part, Tensor):
        array = part._array
        if array.dtype.kind not in "biu":
            raise IndexError(f"a tensor index must be of integers or booleans, not {array.dtype}")
        return array
    if isinstance(part, (list, range)) and _has_tensor(part):
        return np.asarray([int(item) for item in part])
    return part


def _has_tensor(parts: Sequence[Any]) -> bool:
    return any(isinstance(part, Tensor) for part in parts)


def _integers(name: str, index: Tensor) -> Array:
    if index._array.dtype.kind not in "iu":
        raise TypeError(f"{name}() needs an index of integers, not {index._array.dtype}")
    return index._array


IN_PLACE = {"masked_fill_": inplace(masked_fill)}
