"""New tensors filled with a value, or with whatever the memory held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .creation import finish, number_as
from .dtypes import complex_type, get_default_dtype
from .ops.table.operation import operation
from .shapes import to_shape
from .tensors import Tensor
from .types import Array, Scalar

__all__ = ["empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]


@operation
def zeros(
    *lengths: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Zeros of shape ``lengths`` or ``size``, in the default dtype."""
    return finish(np.zeros(to_shape(lengths, size), dtype or get_default_dtype()), requires_grad, device)


@operation
def ones(
    *lengths: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Ones of shape ``lengths`` or ``size``, in the default dtype."""
    return finish(np.ones(to_shape(lengths, size), dtype or get_default_dtype()), requires_grad, device)


@operation
def empty(
    *lengths: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of shape ``lengths`` or ``size`` whose elements are whatever the memory held."""
    return finish(np.empty(to_shape(lengths, size), dtype or get_default_dtype()), requires_grad, device)


@operation
def full(
    size: int | Sequence[int],
    fill_value: Scalar | complex,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``fill_value`` in shape ``size``; the dtype is the value's, floats in the default dtype."""
    value = getattr(fill_value, "_array", fill_value)
    chosen = dtype or _dtype_of(value)
    return finish(_filled(to_shape((size,)), value, chosen), requires_grad, device)


@operation
def zeros_like(
    input: Tensor,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Zeros of the shape and dtype of ``input``."""
    return finish(np.zeros(input.shape, dtype or input.dtype), requires_grad, device)


@operation
def ones_like(
    input: Tensor,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Ones of the shape and dtype of ``input``."""
    return finish(np.ones(input.shape, dtype or input.dtype), requires_grad, device)


@operation
def empty_like(
    input: Tensor,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Uninitialised, of the shape and dtype of ``input``."""
    return finish(np.empty(input.shape, dtype or input.dtype), requires_grad, device)


@operation
def full_like(
    input: Tensor,
    fill_value: Scalar | complex,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``fill_value`` in the shape and dtype of ``input``."""
    value = getattr(fill_value, "_array", fill_value)
    return finish(_filled(input.shape, value, dtype or input.dtype), requires_grad, device)


def _filled(shape: tuple[int, ...], value: Any, dtype: npt.DTypeLike) -> Array:
    result = np.empty(shape, dtype)
    result[...] = number_as(value, result.dtype)
    return result


def _dtype_of(value: Any) -> npt.DTypeLike:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype
    if isinstance(value, bool):
        return np.bool_
    if isinstance(value, complex):
        return complex_type(get_default_dtype())
    return np.int64 if isinstance(value, int) else get_default_dtype()
