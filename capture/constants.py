"""Tensors that a call makes from numbers alone: the same in each replay, in memory of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import core
from ..core.extend import Array, Tensor
from .into import copied
from .stand_in import StandIn
from .tracer import Tracer

_CREATING = frozenset([core.zeros, core.ones, core.full, core.tensor, core.arange, core.linspace, core.eye])
_LARGEST = 1 << 20  # bytes; a larger constant would take memory between replays


def is_constant(function: Callable[..., Any], tensors: Sequence[Tensor], result: Any) -> bool:
    """Return whether an operation has made a tensor from numbers alone.

    Args:
        function: the operation.
        tensors: those among its arguments.
        result: what it returned.
    """
    if function not in _CREATING or tensors or type(result) is not Tensor or result._requires_grad:
        return False
    array = result._array
    return array.flags.c_contiguous and (array.nbytes <= _LARGEST or not np.any(array.reshape(-1).view(np.uint8)))


def constant(tracer: Tracer, array: Array) -> StandIn:
    """Record that such a tensor is made, and return a stand-in for its array."""
    if array.dtype.kind in "fiub" and not np.any(array.reshape(-1).view(np.uint8)):
        return tracer.fresh(np.zeros, (array.shape, array.dtype), {})
    return tracer.call(copied, (array.copy(), "C"), into=True)
