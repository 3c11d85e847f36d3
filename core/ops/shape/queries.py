"""Queries of properties of tensors, with PyTorch's names; some have always the same answer here."""

from __future__ import annotations

from typing import Any

from ...tensors import Tensor
from ..table.operation import published


@published(function=True)
def is_tensor(obj: Any) -> bool:
    """Return whether ``obj`` is a tensor."""
    return isinstance(obj, Tensor)


@published(function=True)
def is_floating_point(input: Tensor) -> bool:
    """Return whether the elements are real floating-point numbers."""
    return input.is_floating_point()


@published(function=True)
def numel(input: Tensor) -> int:
    """Return the number of elements of a tensor."""
    return input.numel()


@published(function=False, method=True)
def is_pinned(input: Tensor) -> bool:
    """Return whether the tensor's memory is pinned: always ``False``."""
    return False


@published(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element of a tensor is not 0. Errors: those of ``bool(input)``."""
    return bool(input)


@published(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether both tensors have the same shape."""
    return input.shape == other.shape


@published(function=True)
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype has negative numbers."""
    return input.is_signed()


@published(method=True)
def is_conj(input: Tensor) -> bool:
    """Return whether the conjugation of the elements is delayed: always ``False``."""
    return False


@published(method=True)
def is_neg(input: Tensor) -> bool:
    """Return whether the negation of the elements is delayed: always ``False``."""
    return False


@published(method=True)
def is_inference(input: Tensor) -> bool:
    """Return whether the tensor is for use in ``inference_mode`` only: always ``False``."""
    return False
