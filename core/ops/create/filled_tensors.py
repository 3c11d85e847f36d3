"""Tensors filled with a value, or not initialized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dtypes import complex_type, get_default_dtype
from ...shapes import to_shape
from ...tensors import Tensor
from ...types import Array, Scalar
from ..table.operation import operation
from .from_data import finish, number_as


@operation(function=True)
def zeros(
    *lengths: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return zeros of shape ``lengths`` or ``size``.

    Args:
        *lengths: the lengths of the dimensions, one by one or as one tuple.
        size: the same as a tuple.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        TypeError: the lengths are not integers.
        ValueError: a length is negative.
    """
    return finish(np.zeros(to_shape(lengths, size), dtype or get_default_dtype()), requires_grad, device)


@operation(function=True)
def ones(
    *lengths: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ones of shape ``lengths`` or ``size``.

    Args:
        *lengths: the lengths of the dimensions, one by one or as one tuple.
        size: the same as a tuple.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        TypeError: the lengths are not integers.
        ValueError: a length is negative.
    """
    return finish(np.ones(to_shape(lengths, size), dtype or get_default_dtype()), requires_grad, device)


@operation(function=True)
def empty(
    *lengths: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an uninitialized tensor of shape ``lengths`` or ``size``.

    Args:
        *lengths: the lengths of the dimensions, one by one or as one tuple.
        size: the same as a tuple.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        TypeError: the lengths are not integers.
        ValueError: a length is negative.
    """
    return finish(np.empty(to_shape(lengths, size), dtype or get_default_dtype()), requires_grad, device)


@operation(function=True)
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: npt.DTypeLike | None = None,
    layout: str | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an uninitialized tensor whose dimensions are in another order in memory.

    Args:
        size: shape of the result.
        physical_layout: the dimensions from the one with the largest step in memory to that with the smallest.
        dtype: dtype of the result; the default dtype if ``None``.
        layout: has no effect: every such tensor is strided.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``physical_layout`` is not an order of all dimensions.
    """
    if sorted(physical_layout) != list(range(len(size))):
        raise ValueError(f"empty_permuted() needs an order of {len(size)} dimensions, and you gave {physical_layout}")
    memory = np.empty([size[dim] for dim in physical_layout], dtype or get_default_dtype())
    return finish(memory.transpose(np.argsort(physical_layout)), requires_grad, device)


@operation(function=True)
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: npt.DTypeLike | None = None,
    layout: str | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an uninitialized tensor with given steps in memory.

    Args:
        size: shape of the result.
        stride: number of elements from one index to the next, for each dimension; not negative.
        dtype: dtype of the result; the default dtype if ``None``.
        layout: has no effect: every such tensor is strided.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: there are not as many strides as lengths, or a negative one.
    """
    if len(size) != len(stride) or min((*size, *stride), default=0) < 0:
        raise ValueError(f"empty_strided() needs as many strides as lengths, from 0: {size}, {stride}")
    kind = np.dtype(dtype or get_default_dtype())
    count = 1 + sum((length - 1) * step for length, step in zip(size, stride)) if all(size) else 0
    steps = [step * kind.itemsize for step in stride]
    return finish(np.ndarray(tuple(size), kind, np.empty(count, kind), 0, steps), requires_grad, device)


@operation(function=True)
def full(
    size: int | Sequence[int],
    fill_value: Scalar | complex,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of shape ``size`` whose elements are all ``fill_value``.

    Args:
        size: the lengths of the dimensions.
        fill_value: a number, or a tensor of one.
        out: where the result is written.
        dtype: dtype of the result; by default that of the value, for Python's floats the default dtype.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        TypeError: the value is complex, and ``dtype`` is not.
        ValueError: a length is negative; the value is nan or infinite, and ``dtype`` is an integer one.
    """
    value = getattr(fill_value, "_array", fill_value)
    chosen = dtype or _dtype_of(value)
    return finish(_filled(to_shape((size,)), value, chosen), requires_grad, device)


@operation(function=True)
def zeros_like(
    input: Tensor,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return zeros of the shape and dtype of ``input``.

    Args:
        input: a tensor.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
        memory_format: has no effect.
    """
    return finish(np.zeros(input.shape, dtype or input.dtype), requires_grad, device)


@operation(function=True)
def ones_like(
    input: Tensor,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return ones of the shape and dtype of ``input``.

    Args:
        input: a tensor.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
        memory_format: has no effect.
    """
    return finish(np.ones(input.shape, dtype or input.dtype), requires_grad, device)


@operation(function=True)
def empty_like(
    input: Tensor,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return an uninitialized tensor of the shape and dtype of ``input``.

    Args:
        input: a tensor.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
        memory_format: has no effect.
    """
    return finish(np.empty(input.shape, dtype or input.dtype), requires_grad, device)


@operation(function=True)
def full_like(
    input: Tensor,
    fill_value: Scalar | complex,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor filled with one value, of the shape and dtype of ``input``.

    Args:
        input: a tensor.
        fill_value: the value: a number, or a tensor of one.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
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
