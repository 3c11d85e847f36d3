"""``Packed``: a saved tensor in the form that ``pack_hook`` of ``saved_tensors_hooks`` gave it."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any

from ...base.errors import AutogradError
from ..tensors import Tensor
from ..types import Counter
from .accumulate import AccumulateGrad
from .node import Edge, Node

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]

# The version counter of every packed value. No value is saved at version -1, so the check of versions that each node makes
# finds a difference, and only then looks for packed values: the usual pass makes no further check.
PACKED: Counter = [-1]


class Packed:
    """The result of ``pack(tensor)``, and the tensor's place in the graph.

    Args:
        tensor: the saved tensor.
        edge: its gradient edge, if it is not an output of the node that saves it.
        slot: the number of that output, if it is one.
        pack: ``pack_hook``.
        unpack: ``unpack_hook``.
    """

    __slots__ = ("_edge", "_kept", "_shape", "_slot", "_unpack")

    def __init__(self, tensor: Tensor, edge: Edge | None, slot: int | None, pack: Pack, unpack: Unpack) -> None:
        self._kept = pack(tensor)
        self._unpack, self._shape = unpack, tensor.shape
        # The edge of an output leads to the node that owns this object: kept, it would close a reference cycle.
        self._edge = edge if slot is None else None
        self._slot = slot

    def tensor(self, node: Node) -> Tensor:
        """Return the unpacked tensor, at its place in the graph.

        Raises:
            AutogradError: the hook returned something else than a tensor of the same shape.
        """
        tensor: Any = self._unpack(self._kept)
        shape = getattr(tensor, "shape", None)
        if shape != self._shape or not hasattr(tensor, "_array"):
            what = type(tensor).__name__ if shape is None else f"a {type(tensor).__name__} of shape {tuple(shape)}"
            raise AutogradError(
                f"unpack_hook must give a tensor of shape {self._shape}, as was packed, and it gave {what}"
            )
        return alias_at(tensor, self._edge if self._slot is None else (node, self._slot))


def alias_at(tensor: Tensor, edge: Edge | None) -> Tensor:
    """Return an alias of ``tensor``, of its class and with its attributes, whose gradient goes to ``edge``."""
    result = copy.copy(tensor)
    result._requires_grad = edge is not None
    if edge is not None and isinstance(edge[0], AccumulateGrad):
        result._accumulator = weakref.ref(edge[0])  # a leaf whose gradient goes to the original leaf
    else:
        result._edge = edge
    return result
