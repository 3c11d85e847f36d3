"""Softmax, log-softmax and log-sum-exp, shifted by the maximum so that no exponential overflows; and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...array_like import as_array
from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import get_default_dtype, is_inexact, to_float, wide
from ...random import Generator, default_generator
from ...tensors import Tensor
from ...types import Array, Dims
from ..elementwise.conversion import to
from ..table.array_functions import add_reduce, maximum_reduce, row_maxima, row_sums
from ..table.dims import all_dims, kept_shape, one_dim
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.row_buffers import RowBuffers
from ..table.rows import ARRAYS, Row

_SHORT, _LONG = 32, 512  # lengths of rows between which it is faster to repeat the number of a row


def _softmax_rule(xp: Any, g: Any, out: Any, dim: Any) -> Any:
    if xp is not ARRAYS:
        return (g - xp.sum_dims(g * out, dim, True)) * out
    result = as_array(g * out)
    result = by_line(np.subtract, g, along(result, dim), dim, out=result)
    result *= out
    return result


def _log_softmax_rule(xp: Any, g: Any, out: Any, dim: Any, exponentials: Any, sums: Any) -> Any:
    if xp is not ARRAYS:
        return g - xp.exp(out) * xp.sum_dims(g, dim, True)
    if not g.size:
        return g
    wide_grad = wide(g)
    result = by_line(np.multiply, exponentials, along(wide_grad, dim) / sums, dim)
    result = np.subtract(wide_grad, result, out=result)
    return result.astype(g.dtype, copy=False)


def by_line(function: Any, x: Array, numbers: Any, axis: int | None, out: Array | None = None) -> Array:
    """Return a ufunc of ``x`` and a number for each line along ``axis``.

    For shorter rows the numbers are repeated first: NumPy does the same, but in buffers that it fills row by row.
    """
    if axis is None or axis != x.ndim - 1 or not _SHORT <= x.shape[-1] < _LONG:
        with RowBuffers(x, axis):
            return as_array(function(x, numbers, out=out))
    out = np.empty(x.shape, x.dtype, like=x) if out is None else out
    np.copyto(out, numbers)
    return as_array(function(x, out, out=out))


def along(x: Array, axis: int | None) -> Any:
    """Return the sums over ``axis`` (``None``: over all), which stays with length 1."""
    return add_reduce(x, axis, keepdims=True) if axis != x.ndim - 1 else row_sums(x)


_SOFTMAX = Row("softmax", _softmax_rule)
_LOG_SOFTMAX = Row("log_softmax", _log_softmax_rule)
_LOGSUMEXP = Row("logsumexp", lambda xp, g, a, out, kept: xp.reshape(g, kept) * xp.exp(a - xp.reshape(out, kept)))
_DROPOUT = Row("dropout", lambda xp, g, mask: g * mask)


@operation(method=True, synonyms=("special.softmax",))
def softmax(input: Tensor, dim: int | None = None, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Return ``exp(input) / sum(exp(input), dim)``, in the shape of ``input``.

    Args:
        input: any shape, floating-point.
        dim: the dimension; negative ones count from the end.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.

    Raises:
        TypeError: ``dim`` is ``None``.
    """
    input, x, axis = _prepared("softmax", input, dim, dtype)
    out = by_line(np.subtract, x, _largest(x, axis), axis)
    np.exp(out, out=out)
    with RowBuffers(x, axis):
        out *= 1 / along(out, axis)  # a division of each element takes twice the time
    result = Tensor(out if x is input._array else out.astype(input._array.dtype, copy=False))
    if input._requires_grad and is_grad_enabled():
        record(_SOFTMAX, result, (input,), (keep_result(result),), axis)
    return result


@operation(method=True, synonyms=("special.log_softmax",))
def log_softmax(input: Tensor, dim: int | None = None, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Return ``log(softmax(input))``, accurate also where the softmax is close to 0.

    Args:
        input: any shape, floating-point.
        dim: the dimension; negative ones count from the end.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.

    Raises:
        TypeError: ``dim`` is ``None``.
    """
    input, x, axis = _prepared("log_softmax", input, dim, dtype)
    out = by_line(np.subtract, x, _largest(x, axis), axis)
    exponentials = as_array(np.exp(out))
    sums = along(exponentials, axis)
    if x.size:  # NumPy would warn about the logarithm of 0
        with RowBuffers(x, axis):
            np.subtract(out, np.log(sums), out=out)
    result = Tensor(out if x is input._array else out.astype(input._array.dtype, copy=False))
    if input._requires_grad and is_grad_enabled():
        record(_LOG_SOFTMAX, result, (input,), (keep_result(result),), axis, exponentials, sums)
    return result


@operation(method=True, synonyms=("special.logsumexp",))
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return ``log(sum(exp(input), dim))``, without overflow; -inf if there are no elements.

    Args:
        input: any shape, floating-point.
        dim: the dimension; negative ones count from the end.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.
    """
    x = to_float(input._array)
    dims = all_dims(dim, x.ndim)
    precise = wide(x)
    shift = peak(precise, dims)
    with np.errstate(divide="ignore"):
        sums = as_array(np.log(add_reduce(np.exp(precise - shift), dims, keepdims=True)) + shift)
    sums = sums.astype(x.dtype, copy=False)
    kept = kept_shape(x.shape, dims)
    result = Tensor(sums if keepdim else sums.reshape([n for axis, n in enumerate(sums.shape) if axis not in dims]))
    if records(input):
        record(_LOGSUMEXP, result, (input,), (keep(input), keep_result(result)), kept)
    return result


@operation(function=True)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None) -> Tensor:
    """Return ``input`` with each element set to 0 with probability ``p`` and the others scaled by ``1 / (1 - p)``.

    Args:
        input: any shape, floating-point.
        p: probability, 0 to 1.
        training: whether to drop elements; if not, ``input`` is returned itself.
        generator: source of random numbers; the default one if ``None``.

    Raises:
        ValueError: ``p`` is not between 0 and 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout() needs a probability between 0 and 1, and you gave {p}")
    if not training or p == 0:
        return input
    x = input._array
    kept = (generator or default_generator).draw("random", x.shape, dtype=np.float32) >= p
    mask = kept * x.dtype.type(0 if p == 1 else 1 / (1 - p))
    result = Tensor(x * mask)
    return record(_DROPOUT, result, (input,), (), mask) if records(input) else result


def _prepared(name: str, input: Tensor, dim: int | None, dtype: Any) -> tuple[Tensor, Array, int | None]:
    if dim is None:
        raise TypeError(f"{name}() needs a dim")
    if dtype is not None:
        input = to(input, dtype)
    if not is_inexact(input._array.dtype):
        input = to(input, get_default_dtype())
    x = input._array
    axis = one_dim(dim, x.ndim)
    return input, wide(x), axis if x.ndim else None


def _largest(x: Array, axis: Any) -> Any:
    if axis is not None and axis == x.ndim - 1:
        return row_maxima(x)
    return maximum_reduce(x, axis, keepdims=True, initial=-np.inf)


def peak(x: Array, axis: Any) -> Any:
    """Return the largest element over ``axis``, or 0 where it is not finite: the shift of the exponents of sums.

    For complex numbers it is the largest real part: a shift by an imaginary part would change the branch of the logarithm.
    """
    top = _largest(x.real, axis)
    return np.where(np.isfinite(top), top, 0)
