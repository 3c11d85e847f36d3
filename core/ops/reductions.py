"""Reductions: sums, means, extremes, variances, over some dimensions or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from ..autograd.grad_mode import is_grad_enabled
from ..dtypes import to_float
from ..tensor import Tensor
from ..types import Array, Dims
from .dims import all_dims, kept_shape, one_dim
from .operation import operation
from .table import Row, keep, keep_result, record, records

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "max",
    "mean",
    "min",
    "std",
    "sum",
    "var",
]
# What of these are methods of tensors too.
METHODS = (
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "max",
    "mean",
    "min",
    "std",
    "sum",
    "var",
)


class ValuesIndices(NamedTuple):
    """What ``max(dim)`` and ``min(dim)`` return."""

    values: Tensor
    indices: Tensor


def _spread(xp: Any, g: Any, shape: Any, kept: Any) -> Any:
    return xp.broadcast_to(xp.reshape(g, kept), shape)


def _share_of_extremes(xp: Any, g: Any, a: Any, out: Any, dims: Any, kept: Any) -> Any:
    # Equal extremes share the gradient evenly, as PyTorch's amax.
    chosen = xp.cast(a == xp.reshape(out, kept), g.dtype)
    return xp.reshape(g, kept) * chosen / xp.sum_dims(chosen, dims, True)


def _var_rule(xp: Any, g: Any, a: Any, dims: Any, kept: Any, count: float, divisor: float) -> Any:
    centred = a - xp.sum_dims(a, dims, True) / count
    return xp.reshape(g, kept) * centred * (2 / divisor)


_SUM = Row("sum", _spread)
_MEAN = Row("mean", lambda xp, g, shape, kept, count: _spread(xp, g / count, shape, kept))
_EXTREME = Row("extreme", _share_of_extremes)
_PICK = Row("pick", lambda xp, g, shape, dim, index, kept: xp.put_along(shape, dim, index, xp.reshape(g, kept)))
_VAR = Row("var", _var_rule)


@operation
def sum(a: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: npt.DTypeLike | None = None) -> Tensor:
    """The sum over ``dim`` (all dimensions if ``None``). Booleans and integers add up as ``int64``."""
    x = a._array if dtype is None else a._array.astype(dtype)
    if dim is None and not keepdim:
        # NumPy accumulates small integers in int64 by itself.
        result = Tensor(x.sum())
        if a._requires_grad and is_grad_enabled():
            record(_SUM, result, (a,), (), x.shape, (1,) * x.ndim)
        return result
    dims = all_dims(dim, x.ndim)
    result = Tensor(x.sum(axis=dims, keepdims=keepdim))
    if a._requires_grad and is_grad_enabled():
        record(_SUM, result, (a,), (), x.shape, kept_shape(x.shape, dims))
    return result


@operation
def mean(a: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: npt.DTypeLike | None = None) -> Tensor:
    """The mean over ``dim`` (all dimensions if ``None``); of no elements, nan."""
    x = to_float(a._array) if dtype is None else a._array.astype(dtype)
    dims = all_dims(dim, x.ndim)
    count = int(np.prod([x.shape[axis] for axis in dims]))
    with np.errstate(invalid="ignore", divide="ignore"):
        # A sum and a division: np.mean would warn of empty slices, and is slower.
        result = Tensor(np.true_divide(x.sum(axis=dims, keepdims=keepdim), count, dtype=x.dtype))
    if a._requires_grad and is_grad_enabled():
        record(_MEAN, result, (a,), (), x.shape, kept_shape(x.shape, dims), count)
    return result


@operation
def amax(a: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The largest element over ``dim``; equal ones share the gradient.

    Raises:
        ValueError: there are no elements.
    """
    return _extreme("amax", np.max, a, dim, keepdim)


@operation
def amin(a: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest element over ``dim``; equal ones share the gradient.

    Raises:
        ValueError: there are no elements.
    """
    return _extreme("amin", np.min, a, dim, keepdim)


@overload
def max(a: Tensor) -> Tensor: ...
@overload
def max(a: Tensor, dim: int, keepdim: bool = ...) -> ValuesIndices: ...
@overload
def max(a: Tensor, dim: Tensor) -> Tensor: ...
@operation
def max(a: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor | ValuesIndices:
    """The largest element; with ``dim``, the largest along it and where; with a tensor, the element-wise maximum."""
    if isinstance(dim, Tensor):
        from .elementwise import maximum

        return maximum(a, dim)
    return amax(a) if dim is None else _pick(a, argmax(a, dim, True), dim, keepdim)


@overload
def min(a: Tensor) -> Tensor: ...
@overload
def min(a: Tensor, dim: int, keepdim: bool = ...) -> ValuesIndices: ...
@overload
def min(a: Tensor, dim: Tensor) -> Tensor: ...
@operation
def min(a: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor | ValuesIndices:
    """The smallest element; with ``dim``, the smallest along it and where; with a tensor, the element-wise minimum."""
    if isinstance(dim, Tensor):
        from .elementwise import minimum

        return minimum(a, dim)
    return amin(a) if dim is None else _pick(a, argmin(a, dim, True), dim, keepdim)


@operation
def argmax(a: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element is, along ``dim`` or in the flattened tensor: the first one, as ``int64``."""
    return _arg(np.argmax, a, dim, keepdim)


@operation
def argmin(a: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element is, along ``dim`` or in the flattened tensor: the first one, as ``int64``."""
    return _arg(np.argmin, a, dim, keepdim)


@operation
def var(a: Tensor, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
    """The variance over ``dim``: divided by the number of elements less ``correction``, nan if that is not positive."""
    x = to_float(a._array)
    dims = all_dims(dim, x.ndim)
    count = int(np.prod([x.shape[axis] for axis in dims]))
    divisor = count - correction if count > correction else float("nan")
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = x - np.true_divide(x.sum(axis=dims, keepdims=True), count, dtype=x.dtype)
        result = Tensor(np.asarray((centred * centred).sum(axis=dims, keepdims=keepdim)) / divisor)
    if records(a):
        record(_VAR, result, (a,), (keep(a),), dims, kept_shape(x.shape, dims), count, divisor)
    return result


@operation
def std(a: Tensor, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
    """The square root of ``var``."""
    from .elementwise import sqrt

    return sqrt(var(a, dim, correction=correction, keepdim=keepdim))


@operation
def all(a: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether every element is true (not zero)."""
    return Tensor(np.all(a._array, axis=all_dims(dim, a.ndim), keepdims=keepdim))


@operation
def any(a: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether some element is true (not zero)."""
    return Tensor(np.any(a._array, axis=all_dims(dim, a.ndim), keepdims=keepdim))


def _extreme(name: str, function: Any, a: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    x = a._array
    dims = all_dims(dim, x.ndim)
    _not_empty(name, x, dims)
    result = Tensor(function(x, axis=dims, keepdims=keepdim))
    if records(a):
        record(_EXTREME, result, (a,), (keep(a), keep_result(result)), dims, kept_shape(x.shape, dims))
    return result


def _arg(function: Any, a: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    x = a._array
    if dim is not None:
        dim = one_dim(dim, x.ndim)
    _not_empty(function.__name__, x, range(x.ndim) if dim is None else (dim,))
    if not x.ndim:
        return Tensor(np.zeros((), np.int64))
    return Tensor(function(x, axis=dim, keepdims=keepdim))


def _pick(a: Tensor, index: Tensor, dim: int, keepdim: bool) -> ValuesIndices:
    x, places = a._array, index._array
    dim = one_dim(dim, x.ndim)
    values = np.take_along_axis(x, places, dim) if x.ndim else x.copy()
    kept = places.shape
    if not keepdim and x.ndim:
        values, places = values.squeeze(dim), places.squeeze(dim)
    result = Tensor(values)
    if records(a):
        record(_PICK, result, (a,), (), x.shape, dim, index._array, kept)
    return ValuesIndices(result, Tensor(places))


def _not_empty(name: str, x: Array, dims: Sequence[int]) -> None:
    for axis in dims:
        if axis < x.ndim and not x.shape[axis]:
            raise ValueError(
                f"{name}() of no elements: the tensor has shape {x.shape}, so give a dim that is not empty"
            )
