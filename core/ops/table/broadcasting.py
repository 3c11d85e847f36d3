"""What operations of several operands share that the factories do not cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.edges import gradient_edge
from ...autograd.grad_mode import is_grad_enabled
from ...tensors import Tensor
from .nodes import BroadcastNode, Row, Saved


def record_fitted(row: Row, result: Tensor, inputs: Sequence[Any], saved: tuple[Saved, ...], *params: Any) -> Tensor:
    """Record ``result`` if an input requires grad; each gradient is brought back to its input's shape and dtype."""
    if not is_grad_enabled() or not any(isinstance(each, Tensor) and each._requires_grad for each in inputs):
        return result
    edges = tuple(gradient_edge(each) if isinstance(each, Tensor) else None for each in inputs)
    targets = tuple(
        None if edge is None else (each._array.shape, each._array.dtype) for each, edge in zip(inputs, edges)
    )
    node = BroadcastNode(row.of(result._array.dtype), edges, saved, targets, params)
    result._edge, result._requires_grad = (node, 0), True
    return result


def integers_divide(function: Any, x: Any, y: Any) -> Any:
    """``function(x, y)``, a division.

    Raises:
        ZeroDivisionError: integers divided by 0.
    """
    if np.result_type(x, y).kind in "biu" and not np.all(y):
        raise ZeroDivisionError("integers cannot be divided by 0; convert to floating point for inf and nan")
    return function(x, y)
