"""Nodes whose rules use tensors that are not saved, such as indices, masks and targets: ``watched`` makes them.

Such a tensor is a parameter of the rules, as an array that may share the tensor's memory. The node keeps only the tensor's
version counter, and compares it before the rules run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ....base.errors import AutogradError
from ...autograd.node import Edges
from ...autograd.saved_hooks import tensors_in
from ...tensors import Tensor
from ...types import Counter, DType
from .nodes import OpNode, Saved
from .rows import Row

# For each tensor its version counter, the version at which the operation read it, and its shape and dtype, for errors.
Versions: TypeAlias = "list[tuple[Counter, int, tuple[int, ...], DType]]"


class WatchingNode(OpNode):
    """Node that refuses to run if a tensor that its rules use was modified in place.

    Attributes:
        versions: versions of these tensors in the forward pass.
    """

    __slots__ = ("versions",)

    def __init__(
        self, row: Row, next_edges: Edges, saved: tuple[Saved, ...] | None, params: tuple[Any, ...], versions: Versions
    ) -> None:
        super().__init__(row, next_edges, saved, params)
        self.versions = versions

    def pull(self, grad: Any, keep: bool) -> Sequence[Any]:
        """Check the versions, and run the rules on arrays."""
        self._check()
        return super().pull(grad, keep)

    def pull_graph(self, grad: Any) -> Sequence[Any]:
        """Check the versions, and run the rules on tensors; their results watch the same tensors."""
        self._check()
        results = super().pull_graph(grad)
        for result in results:
            if type(result) is Tensor and result is not grad:  # not sparse: then the indices are a copy
                _replace_node(result, self.versions)
        return results

    def _check(self) -> None:
        for counter, version, shape, dtype in self.versions:
            if counter[0] != version:
                raise AutogradError(
                    f"{self.name()} needs an index, mask or target (shape {shape}, {dtype}) as it was at version "
                    f"{version}, but it was modified in place and is at version {counter[0]}; clone() it before you change it"
                )


def watched(result: Tensor, used: Any) -> Tensor:
    """Return ``result``; its backward pass fails if a tensor in ``used`` is modified in place before it.

    Args:
        result: result of an operation that has just been recorded, or was not.
        used: a tensor, or nested tuples and lists that may hold tensors: what the rules use, but do not save.
    """
    if result._edge is not None:
        _replace_node(result, versions_of(used))
    return result


def versions_of(used: Any) -> Versions:
    """Return the current versions of the tensors in ``used``."""
    tensors = (used,) if isinstance(used, Tensor) else tensors_in(used)  # a generator costs more than all the rest
    return [(each._counter, each._counter[0], each._array.shape, each._array.dtype) for each in tensors]


def _replace_node(result: Tensor, versions: Versions) -> None:
    node = result._edge and result._edge[0]
    if versions and type(node) is OpNode:
        result._edge = (WatchingNode(node.row, node.next_edges, node.saved, node.params, versions), 0)
