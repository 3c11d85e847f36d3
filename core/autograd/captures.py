"""The gradients that a backward pass with ``inputs`` captures, and the nodes that it must run for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...base.errors import AutogradError
from ..tensors import Tensor
from .edges import gradient_edge
from .node import Node


class Captures:
    """The captured gradients of one backward pass.

    Attributes:
        gradients: one for each of ``inputs``; ``None`` where none has arrived.
    """

    __slots__ = ("_needed", "_targets", "gradients")

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self.gradients: list[Any] = [None] * len(inputs)
        self._targets: dict[Node, list[tuple[int, int]]] = {}  # node -> (slot, index of the input)
        self._needed: set[Node] | None = None
        for index, tensor in enumerate(inputs):
            edge = gradient_edge(tensor)
            if edge is None:
                raise AutogradError(f"inputs[{index}] does not require grad, so it can have no gradient")
            self._targets.setdefault(edge[0], []).append((edge[1], index))

    def prepare(self, nodes: Iterable[Node]) -> None:
        """Find, once, the nodes above the targets: only those need to run."""
        if self._needed is not None:
            return
        parents: dict[Node, list[Node]] = {}
        for node in nodes:
            for edge in node.next_edges:
                if edge is not None:
                    parents.setdefault(edge[0], []).append(node)
        self._needed = set()
        stack = list(self._targets)
        while stack:
            for parent in parents.get(stack.pop(), ()):
                if parent not in self._needed:
                    self._needed.add(parent)
                    stack.append(parent)

    def concerns(self, node: Node) -> bool:
        """Return whether the node's gradient is captured or leads to one that is."""
        return node in self._targets or self.needs(node)

    def needs(self, node: Node) -> bool:
        """Return whether the node must run because a captured gradient lies below it."""
        return self._needed is not None and node in self._needed

    def take(self, node: Node, grads: list[Any]) -> None:
        """Store the node's incoming gradients that were asked for."""
        for slot, index in self._targets.get(node, ()):
            self.gradients[index] = grads[slot]
