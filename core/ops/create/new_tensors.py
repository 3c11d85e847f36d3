"""New tensors with the dtype of an existing tensor: ``new_zeros`` and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from ...tensors import Tensor
from ...types import Scalar
from ..table.operation import published
from . import filled_tensors, from_data


@published(function=False, method=True)
def new_tensor(
    input: Tensor,
    data: Any,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a new tensor with a copy of ``data``, in the dtype of ``input``.

    Args:
        input: the tensor that gives the default dtype.
        data: numbers, nested sequences of them, an array or a tensor.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return from_data.tensor(data, dtype or input.dtype, device, requires_grad)


@published(function=False, method=True)
def new_zeros(
    input: Tensor,
    *size: Any,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return zeros of shape ``size``, in the dtype of ``input``.

    Args:
        input: the tensor that gives the default dtype.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return filled_tensors.zeros(*size, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


@published(function=False, method=True)
def new_ones(
    input: Tensor,
    *size: Any,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ones of shape ``size``, in the dtype of ``input``.

    Args:
        input: the tensor that gives the default dtype.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return filled_tensors.ones(*size, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


@published(function=False, method=True)
def new_empty(
    input: Tensor,
    *size: Any,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of shape ``size`` and the dtype of ``input``, not initialized.

    Args:
        input: the tensor that gives the default dtype.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return filled_tensors.empty(*size, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


@published(function=False, method=True)
def new_empty_strided(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: npt.DTypeLike | None = None,
    layout: str | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``empty_strided`` of the dtype of ``input``. Errors: those of ``empty_strided``.

    Args:
        input: the tensor that gives the default dtype.
        size: shape of the result.
        stride: number of elements from one index to the next, for each dimension.
        dtype: dtype of the result; that of ``input`` if ``None``.
        layout: has no effect.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return filled_tensors.empty_strided(
        size, stride, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad
    )


@published(function=False, method=True)
def new_full(
    input: Tensor,
    size: int | Sequence[int],
    fill_value: Scalar,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of shape ``size`` and the dtype of ``input`` whose elements are all ``fill_value``.

    Args:
        input: the tensor that gives the default dtype.
        size: the shape.
        fill_value: the value.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return filled_tensors.full(size, fill_value, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)
