"""A saved value in the form that ``saved_tensors_hooks`` gave it, and the way back."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import AutogradError
from ..types import Counter
from .node import AccumulateGrad, Edge, Node

if TYPE_CHECKING:
    from ..tensor import Tensor

Pack = Callable[["Tensor"], Any]
Unpack = Callable[[Any], "Tensor"]

# Stands for the version counter of a packed value. No value was saved at version -1, so whoever compares versions, as all do,
# finds a difference, and only then need ask which: unpacking costs the usual pass nothing.
PACKED: Counter = [-1]


class Packed:
    """What ``pack(tensor)`` returned; ``slot`` says which output of its node the tensor is, ``None`` that it is none."""

    __slots__ = ("_edge", "_kept", "_shape", "_slot", "_unpack")

    def __init__(self, tensor: Tensor, edge: Edge | None, slot: int | None, pack: Pack, unpack: Unpack) -> None:
        self._kept = pack(tensor)
        self._unpack, self._shape = unpack, tensor.shape
        # The edge of a result leads to the node that owns this: kept, it would close a cycle.
        self._edge = edge if slot is None else None
        self._slot = slot

    def tensor(self, node: Node) -> Tensor:
        """What was packed, at its place in the graph.

        Raises:
            AutogradError: the hook gave something else than a tensor of the same shape.
        """
        tensor: Any = self._unpack(self._kept)
        shape = getattr(tensor, "shape", None)
        if shape != self._shape or not hasattr(tensor, "_array"):
            what = type(tensor).__name__ if shape is None else f"a {type(tensor).__name__} of shape {tuple(shape)}"
            raise AutogradError(
                f"unpack_hook must give a tensor of shape {self._shape}, as was packed, and it gave {what}"
            )
        return placed(tensor, self._edge if self._slot is None else (node, self._slot))


def placed(tensor: Tensor, edge: Edge | None) -> Tensor:
    """An alias of ``tensor``, with its class and attributes, that stands in the graph where ``edge`` says."""
    result = copy.copy(tensor)
    result._requires_grad = edge is not None
    if edge is not None and isinstance(edge[0], AccumulateGrad):
        result._accumulator = weakref.ref(edge[0])  # a leaf, whose gradient goes where that of the leaf itself goes
    else:
        result._edge = edge
    return result
