"""``tg.masked``: reductions of the elements that a mask shows; the others take no part, in gradients either."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dtypes import is_inexact, real_type
from ...tensors import Tensor
from ...types import Dims
from ..elementwise.complex_numbers import conj
from ..elementwise.conversion import to
from ..elementwise.exponential import sqrt
from ..index.masking import where
from ..linalg.norms import vector_norm
from ..table.dims import all_dims
from ..table.operands import check_tensor
from ..table.operation import operation
from . import extremes, reductions, softmax, sorting

# Value of elements that take no part: it leaves a result as it is. The lowest and highest numbers depend on the dtype.
LOWEST, HIGHEST = "lowest", "highest"

_DOCUMENTATION = """Return {summary} of the elements that ``mask`` shows.

    Args:
        input: any shape.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to compute in; ``None`` for that of the input, or int64 for sums of integers.
        mask: booleans, broadcast to the shape of ``input``: which elements take part; all if ``None``.

    Raises:
        IndexError: there is no such dimension.
        TypeError: the mask is not of booleans, or the dtype does not fit.
        ValueError: the mask has more dimensions than ``input``, or other lengths.
    """


def shown(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """Return ``input`` with ``value`` where the mask is false.

    Args:
        input: any shape.
        mask: booleans, broadcast to the shape of ``input``; ``None`` shows everything.
        value: a number, or one of ``LOWEST`` and ``HIGHEST``.
    """
    if mask is None:
        return input
    check_tensor("masked", "mask", mask)
    if mask.dtype.kind != "b":
        raise TypeError(f"mask must be of booleans, not {mask.dtype}")
    if mask.ndim > input.ndim or np.broadcast_shapes(mask.shape, input.shape) != input.shape:
        raise ValueError(f"a mask of shape {mask.shape} cannot be broadcast to the input's shape {input.shape}")
    return where(mask, input, Tensor(np.asarray(_number(value, input.dtype), input.dtype)))


def _number(value: Any, dtype: Any) -> Any:
    if value not in (LOWEST, HIGHEST):
        return value
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if value == LOWEST else np.iinfo(dtype).max
    return -math.inf if value == LOWEST else math.inf


def _reduction(name: str, compute: Callable[..., Tensor], summary: str) -> Callable[..., Tensor]:
    """Return the operation of a reduction; ``compute`` gets input, mask, dimensions, keepdim and dtype."""

    def reduce(
        input: Tensor,
        dim: Dims = None,
        *,
        keepdim: bool = False,
        dtype: npt.DTypeLike | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        return compute(input, mask, all_dims(dim, input.ndim), keepdim, dtype)

    reduce.__name__ = reduce.__qualname__ = f"masked_{name}"
    reduce.__doc__ = _DOCUMENTATION.format(summary=summary)
    return operation(function=f"masked.{name}")(reduce)


def _sum(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool, dtype: Any) -> Tensor:
    return reductions.sum(shown(x, mask, 0), dims, keepdim, dtype=dtype)


def _prod(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool, dtype: Any) -> Tensor:
    result = shown(x, mask, 1)
    if not dims:
        return reductions.prod(result, dtype=dtype)
    for dim in sorted(dims, reverse=True):
        result = reductions.prod(result, dim, keepdim, dtype=dtype)
    return result


def _extreme(find: Callable[..., Tensor], value: str) -> Callable[..., Tensor]:
    def compute(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool, dtype: Any) -> Tensor:
        result = find(shown(x, mask, value), dims, keepdim)
        return result if dtype is None else to(result, dtype)

    return compute


def _place(find: Callable[..., Tensor], value: str) -> Callable[..., Tensor]:
    def compute(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool, dtype: Any) -> Tensor:
        found = find(shown(x, mask, value), dims[0] if len(dims) == 1 else None, keepdim)
        return to(found, x.dtype if dtype is None else dtype)

    return compute


def _count(x: Tensor, mask: Tensor | None, dims: Any) -> Tensor:
    every = Tensor(np.ones(x.shape, np.bool_))
    return reductions.sum(every if mask is None else every & mask, dims, True)


def _mean(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool, dtype: Any) -> Tensor:
    if not is_inexact(np.dtype(dtype or x.dtype)):
        raise TypeError(f"masked.mean() computes in floating point, and the dtype is {dtype or x.dtype}; give dtype=")
    total = _sum(x, mask, dims, True, dtype)
    return _reduced(total / to(_count(x, mask, dims), total.dtype), dims, keepdim)


def _reduced(x: Tensor, dims: Any, keepdim: bool) -> Tensor:
    return x if keepdim else x.squeeze(tuple(dims)) if dims else x


def _median(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool, dtype: Any) -> Tensor:
    floats = x if x.is_floating_point() else to(x, np.float32)
    (dim,) = dims or (0,)
    found: Any = sorting.nanmedian(shown(floats if dtype is None else to(floats, dtype), mask, math.nan), dim, keepdim)
    if x.is_floating_point():
        return found.values
    if np.isnan(found.values._array).any():
        raise ValueError("masked.median() of integers needs an element that the mask shows in each line")
    return to(found.values, x.dtype)


def _log_sum(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool, dtype: Any) -> Tensor:
    x = x if dtype is None else to(x, dtype)
    if x.dtype.kind == "b":
        raise TypeError("masked.logsumexp() takes numbers, and you gave booleans; convert them, as with float()")
    return to(softmax.logsumexp(shown(x, mask, LOWEST), dims, keepdim), x.dtype)


masked_sum = _reduction("sum", _sum, "the sum (0 of none)")
masked_prod = _reduction("prod", _prod, "the product (1 of none)")
masked_amax = _reduction("amax", _extreme(extremes.amax, LOWEST), "the largest (the lowest number of none)")
masked_amin = _reduction("amin", _extreme(extremes.amin, HIGHEST), "the smallest (the highest number of none)")
masked_argmax = _reduction(
    "argmax", _place(extremes.argmax, LOWEST), "the index, in one dimension or all, in the dtype, of the largest"
)
masked_argmin = _reduction(
    "argmin", _place(extremes.argmin, HIGHEST), "the index, in one dimension or all, in the dtype, of the smallest"
)
masked_mean = _reduction("mean", _mean, "the mean (nan of none)")
masked_median = _reduction("median", _median, "the median in one dimension (nan of none)")
masked_logsumexp = _reduction("logsumexp", _log_sum, "the logarithm of the sum of exponentials")


@operation(function="masked.norm")
def masked_norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: npt.DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return ``linalg.vector_norm`` of the elements that ``mask`` shows. Errors: those of ``masked.sum``.

    Args:
        input: any shape, floating-point or complex.
        ord: order of the norm.
        dim: the dimensions to reduce; all if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        mask: booleans, broadcast to the shape of ``input``: which elements take part; all if ``None``.
    """
    hidden = HIGHEST if ord == -math.inf else 0
    return vector_norm(shown(input, mask, hidden), ord, all_dims(dim, input.ndim), keepdim, dtype=dtype)


@operation(function="masked.var")
def masked_var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: npt.DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the variance of the elements that ``mask`` shows; nan where there are too few.

    Args:
        input: any shape; integers are converted to float32.
        dim: the dimensions to reduce; all if ``None``.
        unbiased: whether ``correction`` is 1; it is 0 if false.
        correction: subtracted from the number of elements; 1 if ``None``.
        keepdim: whether the dimensions that are reduced stay, with length 1.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        mask: booleans, broadcast to the shape of ``input``: which elements take part; all if ``None``.

    Raises:
        ValueError: both ``unbiased`` and ``correction`` are given; those of ``masked.sum``.
    """
    if unbiased is not None and correction is not None:
        raise ValueError("masked.var() takes either unbiased or correction, and you gave both")
    less = correction if correction is not None else 0.0 if unbiased is False else 1.0
    wanted = dtype if dtype is not None else input.dtype if is_inexact(input.dtype) else np.float32
    # Hidden elements are 0 from here on: the gradient of their distance from the mean would be nan if they are infinite.
    x, dims = shown(to(input, wanted), mask, 0), all_dims(dim, input.ndim)
    count = to(_count(x, mask, dims), real_type(x.dtype))
    centred = x - _sum(x, mask, dims, True, None) / count
    total = _sum(centred * conj(centred), mask, dims, True, None)
    return _reduced(total / (count - less).clamp(min=0), dims, keepdim)


@operation(function="masked.std")
def masked_std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: npt.DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the square root of ``masked.var``. Arguments and errors: those of ``masked.var``.

    Args:
        input, dim, unbiased, correction, keepdim, dtype, mask: as there.
    """
    return sqrt(masked_var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))
