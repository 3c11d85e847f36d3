"""Nodes and edges: the recorded graph, and nothing about arrays.

A node represents one operation of the forward pass. Its edges lead to the nodes that produced the operation's inputs,
so gradients travel along them. Tensors own nodes, nodes own what they saved; no node refers to its own outputs, so
the graph has no reference cycle and dies with its last output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from ...base.errors import AutogradError
from .hooks import Hook, NodeHooks, RemovableHandle

# The node that produced a tensor, and which of its outputs the tensor is (= which of its incoming gradients).
Edge: TypeAlias = "tuple[Node, int]"
Edges: TypeAlias = "tuple[Edge | None, ...]"


class Node:
    """One operation of the graph.

    Attributes:
        next_edges: one ``(node, slot)`` for each input, or ``None`` where the input needs no gradient.
        num_inputs: the number of gradients that it takes: that of the outputs of its forward.
        tape: class attribute, true for nodes of one output that have ``pull`` and ``pull_graph`` in place of
            ``apply``, ``apply_graph`` and ``release``. They are not called when no gradient arrives, and a gradient without
            dimensions may be a NumPy scalar.
    """

    __slots__ = ("__weakref__", "_hooks", "_metadata", "next_edges", "num_inputs")

    next_edges: Edges
    num_inputs: int
    tape: ClassVar[bool] = False

    def __init__(self, next_edges: Edges = (), num_inputs: int = 1) -> None:
        self.next_edges = next_edges
        self.num_inputs = num_inputs
        self._hooks: NodeHooks | None = None
        self._metadata: dict[Any, Any] | None = None

    def apply(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Return the gradients of the inputs, given those of the outputs.

        Args:
            grads: ``num_inputs`` arrays, each of the shape of its output; ``None`` for no gradient.

        Returns:
            One array or ``None`` for each edge.
        """
        raise NotImplementedError(f"{type(self).__name__} must define apply(grads)")

    def apply_graph(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Return the same as ``apply``, computed on tensors and recorded (``create_graph=True``).

        Raises:
            AutogradError: the node does not define it.
        """
        raise AutogradError(
            f"{self.name()} cannot be differentiated twice; call backward or grad without create_graph=True"
        )

    def release(self) -> None:
        """Free what was saved for the backward pass; called after ``apply`` unless the graph is kept."""

    def left_out(self) -> None:
        """Note that the node takes no part in a pass that expected it."""

    def pack_saved(self, pack: Callable[[Any, int | None], Any]) -> None:
        """Replace each saved entry by ``pack(entry, slot)`` (``saved_tensors_hooks``); here nothing is saved.

        ``slot`` is the number of the node's output that the entry is; ``None`` if it is not an output.
        """

    def pull(self, grad: Any, keep: bool) -> Sequence[Any]:
        """Do ``apply`` for a tape node, and then ``release`` unless ``keep``."""
        raise NotImplementedError(f"{type(self).__name__} must define pull(grad, keep)")

    def pull_graph(self, grad: Any) -> Sequence[Any]:
        """Do ``apply_graph`` for a tape node."""
        raise NotImplementedError(f"{type(self).__name__} must define pull_graph(grad)")

    def name(self) -> str:
        """Return the operation's name, such as ``MulBackward``."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The edges, with ``(None, 0)`` where there is none (PyTorch's form)."""
        return tuple((None, 0) if edge is None else edge for edge in self.next_edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's notes on this node."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node has run; a returned tuple replaces ``grad_inputs``."""
        return self._hook_tables().after.add(hook)

    def register_prehook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before this node runs; a returned tuple replaces them."""
        return self._hook_tables().before.add(hook)

    def _hook_tables(self) -> NodeHooks:
        if self._hooks is None:
            self._hooks = NodeHooks()
        return self._hooks

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"{self.name()} is a node of a graph, which can be neither copied nor pickled; copy or pickle leaves, or "
            "detach() of results"
        )

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"
