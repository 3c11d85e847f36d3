"""Sums, means and products over all dimensions or some; ``all`` and ``any``."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...array_like import as_array
from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import is_inexact
from ...tensors import Tensor
from ...types import Array, Dims
from ..elementwise import operators
from ..elementwise.conversion import to
from ..table.array_functions import multiply_reduce, pairwise_sum, stretched_dims, whole_sum
from ..table.dims import all_dims, kept_shape, one_dim
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation, published
from ..table.rows import Row
from .cumulative import product_rule

_add: Any = np.add.reduce
_ROW = 16  # elements, from which on rows are divided in halves


def _expanded(xp: Any, g: Any, shape: Any, kept: Any) -> Any:
    return xp.broadcast_to(xp.reshape(g, kept), shape)


def _prod_rule(xp: Any, g: Any, a: Any, out: Any, dim: int | None, kept: Any) -> Any:
    g, out = xp.reshape(g, kept), xp.reshape(out, kept)
    return product_rule(xp, g, a, out, dim)


_SUM = Row("sum", _expanded)
_MEAN = Row("mean", lambda xp, g, shape, kept, count: _expanded(xp, g / count, shape, kept))
_NANSUM = Row("nansum", lambda xp, g, mask, kept: xp.chosen(mask, xp.reshape(g, kept)))
_PROD = Row("prod", _prod_rule)


@operation(method=True)
def sum(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: npt.DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sum over ``dim``; ``int64`` for booleans and integers.

    Args:
        input: any shape.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        out: where the result is written.
    """
    if dtype is not None:
        input = to(input, dtype)
    x = input._array
    if dim is None and not keepdim:
        result = Tensor(whole_sum(x) if x.itemsize >= 4 and x.dtype.kind == "f" else total(x, None, False, dtype))
        if input._requires_grad and is_grad_enabled():
            record(_SUM, result, (input,), (), x.shape, (1,) * x.ndim)
        return result
    dims = all_dims(dim, x.ndim)
    result = Tensor(total(x, dims, keepdim, dtype))
    if input._requires_grad and is_grad_enabled():
        record(_SUM, result, (input,), (), x.shape, kept_shape(x.shape, dims))
    return result


def total(x: Array, dims: Any, keepdims: bool, dtype: npt.DTypeLike | None = None) -> Array:
    """Return the sum in the dtype of ``x``, computed in float32 for half precision; for integers in ``dtype`` or ``int64``."""
    if x.dtype.kind in "biu":
        return as_array(_add(x, dims, np.int64, keepdims=keepdims)).astype(dtype or np.int64, copy=False)
    return wide_total(x, dims, keepdims).astype(x.dtype, copy=False)


def wide_total(x: Array, dims: Any, keepdims: bool) -> Array:
    """Return the sum of floating-point or complex numbers; ``float32`` for numbers of half precision."""
    # The ufunc itself: methods of arrays would give NumPy's warning about inf - inf.
    if x.itemsize == 2:
        return as_array(_add(x, dims, np.float32, keepdims=keepdims))
    return as_array(pairwise_sum(x, dims, keepdims))


@operation(method=True)
def mean(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: npt.DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the mean over ``dim``; nan if there are no elements.

    Args:
        input: any shape.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        out: where the result is written.

    Raises:
        TypeError: ``input`` holds integers or booleans, and ``dtype`` is ``None``.
    """
    if dtype is not None:
        input = to(input, dtype)
    x = needs_inexact("mean", input)
    if dim is None and not keepdim and x.itemsize >= 4 and x.size:
        result = Tensor(whole_sum(x) / x.dtype.type(x.size))
        if input._requires_grad and is_grad_enabled():
            record(_MEAN, result, (input,), (), x.shape, (1,) * x.ndim, x.size)
        return result
    dims = all_dims(dim, x.ndim)
    count = math.prod([x.shape[axis] for axis in dims])
    # A sum and a division: np.mean would warn about empty slices, and is slower.
    # Numbers of half precision are divided before rounding: their sum may overflow.
    added = wide_total(x, dims, keepdim)
    result = Tensor(np.true_divide(added, added.dtype.type(count)).astype(x.dtype, copy=False))
    if input._requires_grad and is_grad_enabled():
        record(_MEAN, result, (input,), (), x.shape, kept_shape(x.shape, dims), count)
    return result


def needs_inexact(name: str, input: Tensor) -> Array:
    """Return the array of ``input``, which must hold floating-point or complex numbers.

    Raises:
        TypeError: ``input`` holds integers or booleans.
    """
    if not is_inexact(input._array.dtype):
        raise TypeError(
            f"{name}() takes floating-point or complex numbers, and you gave {input.dtype}; convert it, as with float()"
        )
    return input._array


@operation(method=True)
def nansum(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: npt.DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sum over ``dim`` of the elements that are not nan.

    Args:
        input: any shape.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        out: where the result is written.
    """
    if dtype is not None:
        input = to(input, dtype)
    x = input._array
    if not is_inexact(x.dtype):
        return sum(input, dim, keepdim, dtype=dtype)
    dims = all_dims(dim, x.ndim)
    mask = ~np.isnan(x)
    result = Tensor(total(np.where(mask, x, x.dtype.type(0)), dims, keepdim))
    if records(input):
        record(_NANSUM, result, (input,), (), mask, kept_shape(x.shape, dims))
    return result


@operation(method=True)
def nanmean(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: npt.DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the mean over ``dim`` of the elements that are not nan; nan if all are.

    Args:
        input: any shape.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        out: where the result is written.

    Raises:
        TypeError: ``input`` holds integers or booleans, and ``dtype`` is ``None``.
    """
    if dtype is not None:
        input = to(input, dtype)
    x = needs_inexact("nanmean", input)
    count = Tensor(np.asarray((~np.isnan(x)).sum(axis=all_dims(dim, x.ndim), keepdims=keepdim)))
    return operators.div(nansum(input, dim, keepdim), count)


@operation(method=True)
def prod(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: npt.DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the product over ``dim``, or of all elements; ``int64`` for booleans and integers.

    Args:
        input: any shape.
        dim: the dimension; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        out: where the result is written.
    """
    if dtype is not None:
        input = to(input, dtype)
    x = input._array
    axis = None if dim is None else one_dim(dim, x.ndim)
    axis = axis if x.ndim else None
    wide: Any = np.int64 if x.dtype.kind in "biu" else np.float32 if x.itemsize == 2 else x.dtype
    keepdim = keepdim and dim is not None
    product = multiply_reduce(_halved(x) if axis == x.ndim - 1 else x, axis, wide, keepdims=keepdim)
    result = Tensor(as_array(product).astype((dtype or wide) if x.dtype.kind in "biu" else x.dtype, copy=False))
    if records(input):
        kept = kept_shape(x.shape, range(x.ndim) if axis is None else (axis,))
        record(_PROD, result, (input,), (keep(input), keep_result(result)), axis, kept)
    return result


def _halved(x: Array) -> Array:
    """Return shorter rows with the same products: a product of halves does not wait for the element before."""
    while x.dtype.kind == "f" and x.itemsize > 2 and x.shape[-1] >= _ROW and not x.shape[-1] % 2:
        half = x.shape[-1] // 2
        x = as_array(x[..., :half] * x[..., half:])
    return x


@operation(method=True)
def all(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return whether all elements over ``dim`` are not zero: a boolean tensor; ``uint8`` for ``uint8``.

    Args:
        input: any shape.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.
    """
    return _truth(np.all, input, dim, keepdim)


@operation(method=True)
def any(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return whether any element over ``dim`` is not zero: a boolean tensor; ``uint8`` for ``uint8``.

    Args:
        input: any shape.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.
    """
    return _truth(np.any, input, dim, keepdim)


def _truth(function: Any, input: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    x = input._array
    none = isinstance(dim, (tuple, list)) and not dim  # here () stands for no dimension, as in PyTorch
    found = as_array(function(x, axis=() if none else all_dims(dim, x.ndim), keepdims=keepdim))
    return Tensor(found.astype(np.uint8 if x.dtype == np.uint8 else np.bool_, copy=False))


@operation(method=True)
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Return the number of elements over ``dim`` that are not zero, ``int64``."""
    return Tensor(np.asarray(np.count_nonzero(input._array, axis=all_dims(dim, input._array.ndim))).astype(np.int64))


@published(function=False, method=True)
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Return the sums over the dimensions that broadcasting from ``size`` would expand; the adjoint of ``expand``.

    Raises:
        ValueError: ``size`` cannot be broadcast to the shape of ``input``.
    """
    wanted: tuple[int, ...] = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    extra = input.ndim - len(wanted)
    if extra < 0 or builtins.any(length not in (1, own) for length, own in zip(wanted, input.shape[extra:])):
        raise ValueError(f"sum_to_size() cannot sum shape {input.shape} to {wanted}")
    dims = stretched_dims(input.shape, wanted)
    return (sum(input, dims) if dims or not wanted else input).reshape(wanted)
