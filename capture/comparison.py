"""Comparison of what an operation returned with what its repetition on stand-ins gave: bit by bit."""

from __future__ import annotations

from typing import Any

from ..core.extend import Array, Tensor
from .errors import Unrecordable
from .stand_in import StandIn


def check_alike(real: Any, shadow: Any) -> None:
    """Raise unless two results have the same structure, and their tensors the same bits.

    Args:
        real: result of an operation.
        shadow: result of the same on stand-ins.

    Raises:
        Unrecordable: they differ.
    """
    if isinstance(real, Tensor):
        if not isinstance(shadow, Tensor) or type(shadow._array) is not StandIn:
            raise Unrecordable("it makes a new tensor")
        if real._requires_grad != shadow._requires_grad or not alike(real._array, shadow._array._example):
            raise Unrecordable("its repetition gave something else")
    elif isinstance(real, (tuple, list)):
        if type(real) is not type(shadow) or len(real) != len(shadow):
            raise Unrecordable("its repetition gave something else")
        for each, other in zip(real, shadow):
            check_alike(each, other)
    elif real is not None or shadow is not None:
        raise Unrecordable("it returns no tensor")


def alike(one: Array, other: Array) -> bool:
    """Return whether two arrays have the same dtype, shape, strides and bits."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    steps = [step for step, length in zip(one.strides, one.shape) if length > 1]
    if one.size and steps != [step for step, length in zip(other.strides, other.shape) if length > 1]:
        return False
    return one.tobytes() == other.tobytes()
