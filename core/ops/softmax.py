"""Softmax and its relatives, shifted by the maximum so that no exponential overflows; and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..autograd.grad_mode import is_grad_enabled
from ..dtypes import to_float
from ..random import Generator, default_generator
from ..tensor import Tensor
from ..types import Array, Dims
from .casting import to
from .dims import all_dims, kept_shape, one_dim
from .operation import operation
from .table import Row, keep, keep_result, record, records

__all__ = [
    "dropout",
    "log_softmax",
    "logsumexp",
    "softmax",
]
# What of these are methods of tensors too.
METHODS = (
    "log_softmax",
    "logsumexp",
    "softmax",
)

_SOFTMAX = Row("softmax", lambda xp, g, out, dim: (g - xp.sum_dims(g * out, dim, True)) * out)
_LOG_SOFTMAX = Row("log_softmax", lambda xp, g, out, dim: g - xp.exp(out) * xp.sum_dims(g, dim, True))
_LOGSUMEXP = Row("logsumexp", lambda xp, g, a, out, kept: xp.reshape(g, kept) * xp.exp(a - xp.reshape(out, kept)))
_DROPOUT = Row("dropout", lambda xp, g, mask: g * mask)


@operation
def softmax(a: Tensor, dim: int, dtype: npt.DTypeLike | None = None) -> Tensor:
    """``exp(a)`` divided by its sum along ``dim``."""
    a, x, axis = _prepared(a, dim, dtype)
    out = np.exp(x - peak(x, axis))
    result = Tensor(out / out.sum(axis=axis, keepdims=True))
    if a._requires_grad and is_grad_enabled():
        record(_SOFTMAX, result, (a,), (keep_result(result),), axis)
    return result


@operation
def log_softmax(a: Tensor, dim: int, dtype: npt.DTypeLike | None = None) -> Tensor:
    """The logarithm of ``softmax``, precise where that is tiny."""
    a, x, axis = _prepared(a, dim, dtype)
    shifted = x - peak(x, axis)
    # Of nothing there is no logarithm, and NumPy would say so.
    result = Tensor(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)) if x.size else shifted)
    if a._requires_grad and is_grad_enabled():
        record(_LOG_SOFTMAX, result, (a,), (keep_result(result),), axis)
    return result


@operation
def logsumexp(a: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(a)))`` over ``dim``; of no elements, -inf."""
    x = to_float(a._array)
    dims = all_dims(dim, x.ndim)
    shift = peak(x, dims)
    with np.errstate(divide="ignore"):
        out = np.asarray(np.log(np.exp(x - shift).sum(axis=dims, keepdims=True)) + shift)
    kept = kept_shape(x.shape, dims)
    result = Tensor(out if keepdim else out.reshape([n for axis, n in enumerate(out.shape) if axis not in dims]))
    if records(a):
        record(_LOGSUMEXP, result, (a,), (keep(a), keep_result(result)), kept)
    return result


@operation
def dropout(a: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None) -> Tensor:
    """While training, zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout() needs a probability between 0 and 1, and you gave {p}")
    if not training or p == 0:
        return a
    x = a._array
    kept = (generator or default_generator).draw("random", x.shape, dtype=np.float32) >= p
    mask = kept * x.dtype.type(0 if p == 1 else 1 / (1 - p))
    result = Tensor(x * mask)
    return record(_DROPOUT, result, (a,), (), mask) if records(a) else result


def _prepared(a: Tensor, dim: int, dtype: Any) -> tuple[Tensor, Array, int | None]:
    if dtype is not None:
        a = to(a, dtype)
    x = to_float(a._array)
    axis = one_dim(dim, x.ndim)
    return a, x, axis if x.ndim else None


def peak(x: Array, axis: Any) -> Any:
    """The largest element along ``axis``: what exponents are shifted by."""
    # Along an empty dimension any peak does; of only -inf, 0 does: -inf - -inf would be nan.
    top = x.max(axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0) if not np.isfinite(top).all() else top
