"""Softmax and its relatives, shifted by the maximum so that no exponential overflows; and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import get_default_dtype, is_inexact, to_float
from ...random import Generator, default_generator
from ...tensors import Tensor
from ...types import Array, Dims
from ..elementwise.conversion import to
from ..table.array_functions import add_reduce, maximum_reduce
from ..table.dims import all_dims, kept_shape, one_dim
from ..table.nodes import keep, keep_result, record, records
from ..table.operation import operation
from ..table.rows import Row

# What of these are methods of tensors too.

_SOFTMAX = Row("softmax", lambda xp, g, out, dim: (g - xp.sum_dims(g * out, dim, True)) * out)
_LOG_SOFTMAX = Row("log_softmax", lambda xp, g, out, dim: g - xp.exp(out) * xp.sum_dims(g, dim, True))
_LOGSUMEXP = Row("logsumexp", lambda xp, g, a, out, kept: xp.reshape(g, kept) * xp.exp(a - xp.reshape(out, kept)))
_DROPOUT = Row("dropout", lambda xp, g, mask: g * mask)


@operation(method=True, synonyms=("special.softmax",))
def softmax(input: Tensor, dim: int | None = None, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Return ``exp(input)`` divided by its sum along ``dim``.

    Args:
        input: any shape, floating-point.
        dim: the dimension; negative ones count from the end.
        dtype: dtype to convert to before.

    Raises:
        TypeError: no ``dim``.
    """
    input, x, axis = _prepared("softmax", input, dim, dtype)
    out = np.exp(x - _largest(x, axis))
    out = out / add_reduce(out, axis, keepdims=True)
    result = Tensor(out if x is input._array else out.astype(input._array.dtype, copy=False))
    if input._requires_grad and is_grad_enabled():
        record(_SOFTMAX, result, (input,), (keep_result(result),), axis)
    return result


@operation(method=True, synonyms=("special.log_softmax",))
def log_softmax(input: Tensor, dim: int | None = None, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Return the logarithm of ``softmax``, precise where that is tiny.

    Args:
        input: any shape, floating-point.
        dim: the dimension; negative ones count from the end.
        dtype: dtype to convert to before.

    Raises:
        TypeError: no ``dim``.
    """
    input, x, axis = _prepared("log_softmax", input, dim, dtype)
    out = x - _largest(x, axis)
    # Of nothing there is no logarithm, and NumPy would say so.
    if x.size:
        out = out - np.log(add_reduce(np.exp(out), axis, keepdims=True))
    result = Tensor(out if x is input._array else out.astype(input._array.dtype, copy=False))
    if input._requires_grad and is_grad_enabled():
        record(_LOG_SOFTMAX, result, (input,), (keep_result(result),), axis)
    return result


@operation(method=True, synonyms=("special.logsumexp",))
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return ``log(sum(exp(input)))`` over ``dim``, without overflow; of no elements, -inf.

    Args:
        input: any shape, floating-point.
        dim: the dimension; negative ones count from the end.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        out: where the result is written.
    """
    x = to_float(input._array)
    dims = all_dims(dim, x.ndim)
    shift = peak(x, dims)
    with np.errstate(divide="ignore"):
        sums = np.asarray(np.log(add_reduce(np.exp(x - shift), dims, keepdims=True)) + shift)
    kept = kept_shape(x.shape, dims)
    result = Tensor(sums if keepdim else sums.reshape([n for axis, n in enumerate(sums.shape) if axis not in dims]))
    if records(input):
        record(_LOGSUMEXP, result, (input,), (keep(input), keep_result(result)), kept)
    return result


@operation(function=True)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None) -> Tensor:
    """While training, zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``.

    Args:
        input: any shape, floating-point.
        p: probability, 0 to 1.
        training: whether to change anything.
        generator: source of random numbers; the default one if ``None``.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
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
    return input, x.astype(np.float32) if x.itemsize == 2 else x, axis if x.ndim else None


def _largest(x: Array, axis: Any) -> Any:
    return maximum_reduce(x, axis, keepdims=True, initial=-np.inf)


def peak(x: Array, axis: Any) -> Any:
    """Return the largest element along ``axis`` where it is finite, else 0: what exponents of sums are shifted by.

    Of complex numbers the largest real part: shifted by an imaginary part, a logarithm would leave its branch.
    """
    top = _largest(x.real, axis)
    return np.where(np.isfinite(top), top, 0) if not np.isfinite(top).all() else top
