"""Small questions about tensors, of which many have one answer here, for programs that ask."""

from __future__ import annotations

from typing import Any

from ...tensors import Tensor

__all__ = [
    "is_conj",
    "is_floating_point",
    "is_inference",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "numel",
]
METHODS = ("is_conj", "is_inference", "is_neg", "is_nonzero", "is_pinned", "is_same_size")


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are real floating-point numbers."""
    return input.is_floating_point()


def numel(input: Tensor) -> int:
    """How many elements it has."""
    return input.numel()


def is_pinned(input: Tensor) -> bool:
    """Whether its memory is pinned: never."""
    return False


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0. Errors: those of ``bool(input)``."""
    return bool(input)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have one shape."""
    return input.shape == other.shape


def is_signed(input: Tensor) -> bool:
    """Whether the type has negative numbers."""
    return input.is_signed()


def is_conj(input: Tensor) -> bool:
    """Whether a conjugation is left for later: never."""
    return False


def is_neg(input: Tensor) -> bool:
    """Whether a negation is left for later: never."""
    return False


def is_inference(input: Tensor) -> bool:
    """Whether it cannot be used outside ``inference_mode``: never."""
    return False
