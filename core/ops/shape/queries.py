"""Small questions about tensors, of which many have one answer here, for programs that ask."""

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
    """Return how many elements it has."""
    return input.numel()


@published(function=False, method=True)
def is_pinned(input: Tensor) -> bool:
    """Return whether its memory is pinned: never."""
    return False


@published(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Return whether the one element is not 0. Errors: those of ``bool(input)``."""
    return bool(input)


@published(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether both have one shape."""
    return input.shape == other.shape


@published(function=True)
def is_signed(input: Tensor) -> bool:
    """Return whether the type has negative numbers."""
    return input.is_signed()


@published(method=True)
def is_conj(input: Tensor) -> bool:
    """Return whether a conjugation is left for later: never."""
    return False


@published(method=True)
def is_neg(input: Tensor) -> bool:
    """Return whether a negation is left for later: never."""
    return False


@published(method=True)
def is_inference(input: Tensor) -> bool:
    """Return whether it cannot be used outside ``inference_mode``: never."""
    return False
