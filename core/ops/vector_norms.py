"""``linalg.vector_norm``: how long vectors are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..tensor import Tensor
from ..types import Array, Dims
from .casting import to
from .dims import all_dims, kept_shape
from .operation import delivered, operation
from .table import Row, keep, keep_result, record, records

__all__: list[str] = []
METHODS = ()


def _rule(xp: Any, g: Any, x: Any, out: Any, order: float, dims: Any, kept: Any) -> Any:
    g, length = xp.reshape(g, kept), xp.reshape(out, kept)
    if order == 2:
        return x * xp.where(length == 0, 0, g / xp.where(length == 0, 1, length))
    size = xp.real(x * xp.conj(xp.sign(x)))
    if order in (np.inf, -np.inf):
        chosen = xp.cast(size == length, g.dtype)
        return xp.sign(x) * (g * chosen / xp.sum_dims(chosen, dims, True))
    if order == 1:
        return g * xp.sign(x)
    # Where x is 0 its direction is 0; where all are, so is the length.
    here = xp.where(size == 0, 1, size)
    share = (here / xp.where(length == 0, 1, length)) ** (order - 1)
    return xp.sign(x) * (g * xp.where(size == 0, 0 if order > 1 else np.nan, share) if order < 1 else g * share)


_NORM = Row("linalg_vector_norm", _rule, holomorphic=False)


@operation
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
    if not np.prod([values.shape[axis] for axis in dims]) and (ord < 0 or ord == np.inf):
        raise ValueError(f"linalg.vector_norm() of order {ord} needs elements, and the shape is {values.shape}")
    result = Tensor(_length(values, float(ord), dims, keepdim))
    if ord != 0 and records(source):
        saved = (keep(source), keep_result(result))
        record(_NORM, result, (source,), saved, float(ord), dims, kept_shape(values.shape, dims))
    return result if out is None else delivered("linalg.vector_norm", result, out)


def _length(x: Array, order: float, dims: tuple[int, ...], keepdim: bool) -> Array:
    size = np.abs(x)
    if order == np.inf:
        return np.asarray(size.max(axis=dims, keepdims=keepdim))
    if order == -np.inf:
        return np.asarray(size.min(axis=dims, keepdims=keepdim))
    if order == 0:
        return np.asarray((size != 0).sum(axis=dims, keepdims=keepdim).astype(size.dtype))
    if order == 1:
        return np.asarray(size.sum(axis=dims, keepdims=keepdim))
    if order == 2:
        return np.asarray(np.sqrt((size * size).sum(axis=dims, keepdims=keepdim)))
    return np.asarray((size**order).sum(axis=dims, keepdims=keepdim) ** (1 / order))
