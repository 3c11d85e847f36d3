"""``linalg.vector_norm``: how long vectors are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...tensors import Tensor
from ...types import Array, Dims
from ..elementwise.conversion import to
from ..reduce.array_reductions import add_reduce, maximum_reduce, minimum_reduce
from ..table.dims import all_dims, kept_shape
from ..table.nodes import Row, keep, keep_result, record, records
from ..table.operation import operation


def _rule(xp: Any, g: Any, x: Any, *arguments: Any) -> Any:
    return xp.cast(_slope(xp, g, x, *arguments), x.dtype)


def _slope(xp: Any, g: Any, x: Any, out: Any, order: float, dims: Any, kept: Any) -> Any:
    g, length = xp.reshape(g, kept), xp.reshape(out, kept)
    if order == 1:
        return xp.sign(x) * g
    if order == 2:
        return x * xp.where(length == 0, 0.0, g / xp.where(length == 0, 1.0, length))
    size = xp.abs(x)
    if order in (np.inf, -np.inf):
        chosen = xp.cast((size == length) | ((size != size) & (length != length)), length.dtype)
        return xp.sign(x) * (g * chosen / xp.sum_dims(chosen, dims, True))
    # Where x is 0 it has no direction, and no gradient, as in PyTorch also where the slope is infinite.
    here = xp.where(size == 0, 1.0, size)
    scale = xp.where(length == 0, 0.0, g * xp.where(length == 0, 1.0, length) ** (1 - order))
    return xp.where(size == 0, 0.0, xp.sign(x) * here ** (order - 1)) * scale


_NORM = Row("linalg_vector_norm", _rule, holomorphic=False)


@operation(function="linalg.vector_norm")
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: npt.DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The norm of vectors: ``(|x| ** ord).sum() ** (1 / ord)``; the largest or smallest size for plus or minus infinity.

    Args:
        x: of floating point.
        ord: which norm; 0 counts what is not 0.
        dim: the dimensions of the vectors, all by default: then the tensor counts as flattened.
        keepdim: keep them, with length 1.
        dtype: what to convert to first.
        out: where the result is written.

    Raises:
        IndexError: there is no such dimension.
        TypeError: not of floating point.
        ValueError: the smallest or largest of no elements.
    """
    source = x if dtype is None else to(x, dtype)
    if source.dtype.kind in "biu":
        raise TypeError(f"linalg.vector_norm() computes in floating point, not {source.dtype}; pass dtype=")
    values, dims = source._array, all_dims(dim, x.ndim)
    if not math.prod([values.shape[axis] for axis in dims]) and (ord < 0 or ord == np.inf):
        raise ValueError(f"linalg.vector_norm() of order {ord} needs elements, and the shape is {values.shape}")
    result = Tensor(_length(values, float(ord), dims, keepdim))
    if ord != 0 and records(source):
        saved = (keep(source), keep_result(result))
        record(_NORM, result, (source,), saved, float(ord), dims, kept_shape(values.shape, dims))
    return result


def _length(x: Array, order: float, dims: tuple[int, ...], keepdim: bool) -> Array:
    if order == 2 and x.dtype.kind == "f" and x.itemsize > 2 and len(dims) == x.ndim and not keepdim:
        flat = x.reshape(-1)
        return np.asarray(np.sqrt(flat.dot(flat)))  # one pass over the memory
    size = np.abs(x)
    kind = size.dtype
    if size.itemsize == 2:
        size = size.astype(np.float32)
    if order == np.inf:
        result = maximum_reduce(size, dims, keepdims=keepdim)
    elif order == -np.inf:
        result = minimum_reduce(size, dims, keepdims=keepdim)
    elif order == 0:
        result = add_reduce(size != 0, dims, keepdims=keepdim)
    elif order == 1:
        result = add_reduce(size, dims, keepdims=keepdim)
    elif order == 2:
        result = np.sqrt(add_reduce(size * size, dims, keepdims=keepdim))
    else:
        result = add_reduce(size**order, dims, keepdims=keepdim) ** (1 / order)
    return np.asarray(result).astype(kind, copy=False)
