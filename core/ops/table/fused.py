"""``fused``: an operation whose passes over arrays are written by hand, in one node, however many outputs it has.

For what would otherwise be hundreds of nodes, as a layer of an LSTM is. A pass that is itself recorded goes another way: it
*replays* the operation by ordinary ones, and differentiates those. So does one whose inputs ``saved_tensors_hooks`` packed:
then nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...autograd.edges import gradient_edge
from ...autograd.grad_mode import GradMode
from ...autograd.node import Node
from ...tensors import Tensor
from ...types import Array
from ..shape.reshaping import view_as
from .nodes import Saved, freed, keep, modified, saved_tensor

# From the gradients of the outputs (None: nobody uses it) and whether each input wants one, to those of the inputs.
Backward: TypeAlias = Callable[[Sequence[Array | None], Sequence[bool]], Sequence[Array | None]]
Replay: TypeAlias = Callable[..., Sequence[Tensor]]


def fused(
    name: str, inputs: Sequence[Tensor | None], outputs: Sequence[Array], backward: Backward, replay: Replay
) -> tuple[Tensor, ...]:
    """Tensors over ``outputs``, recorded as the results of one operation on ``inputs``.

    Args:
        name: of the operation; its node is called ``NameBackward``.
        inputs: what the operation was given; ``None`` stands for what was left out.
        outputs: its results, all of floating point.
        backward: computes gradients from what it holds of the forward pass; see ``Backward``.
        replay: the operation made of others: from ``inputs`` to a sequence of tensors like the outputs.
    """
    node = FusedNode(name, inputs, len(outputs), backward, replay)
    results = tuple(Tensor(np.asarray(output), True, (node, slot)) for slot, output in enumerate(outputs))
    node.computed = tuple((result._array, None, result._counter, 0) for result in results)
    return results


class FusedNode(Node):
    """The node of ``fused``."""

    __slots__ = ("_backward", "_name", "_replay", "computed", "saved")

    computed: tuple[Saved, ...]

    def __init__(
        self, name: str, inputs: Sequence[Tensor | None], outputs: int, backward: Backward, replay: Replay
    ) -> None:
        super().__init__(tuple(None if tensor is None else gradient_edge(tensor) for tensor in inputs), outputs)
        self._name = name
        self._backward: Backward | None = backward
        self._replay = replay
        self.saved: tuple[Saved, ...] | None = tuple(None if tensor is None else keep(tensor) for tensor in inputs)

    def apply(self, grads: Sequence[Array | None]) -> Sequence[Array | None]:
        """The gradients of the inputs, by hand."""
        if all(grad is None for grad in grads):
            return (None,) * len(self.next_edges)
        if self._backward is None:
            given = [None if grad is None else Tensor(np.asarray(grad)) for grad in grads]
            return [None if found is None else found._array for found in self._replayed(given, create_graph=False)]
        for entry in (*(self.saved or ()), *self.computed):
            if entry is not None and entry[2][0] != entry[3]:
                raise modified(self.name(), entry)
        return self._backward(grads, [edge is not None for edge in self.next_edges])

    def apply_graph(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """The same by ordinary operations, recorded."""
        return self._replayed(grads, create_graph=True)

    def _replayed(self, grads: Sequence[Tensor | None], create_graph: bool) -> Sequence[Tensor | None]:
        from ...autograd.gradients import grad as gradients

        if self.saved is None:
            raise freed(self.name())
        tensors = [saved_tensor(self, entry) for entry in self.saved]
        with GradMode(True):
            # Aliases, so that no gradient goes round through what one input owes to another.
            inputs = [None if tensor is None else view_as(tensor, tensor) for tensor in tensors]
            results = self._replay(*inputs)
        wanted = [alias for alias, edge in zip(inputs, self.next_edges) if alias is not None and edge is not None]
        used = [(output, grad) for output, grad in zip(results, grads) if grad is not None]
        if not used:
            return (None,) * len(inputs)
        outputs, given = zip(*used)
        found = iter(gradients(outputs, wanted, given, create_graph=create_graph, allow_unused=True))
        return [None if edge is None else next(found) for edge in self.next_edges]

    def pack_saved(self, packed: Callable[[Any, int | None], Any]) -> None:
        """Replace the inputs, and forget the forward pass."""
        if self.saved is not None:
            self.saved = tuple(packed(entry, None) for entry in self.saved)
            self._backward, self.computed = None, ()

    def release(self) -> None:
        """Forget the forward pass."""
        self._backward = self.saved = None
        self.computed = ()

    def name(self) -> str:
        """The operation's name."""
        return f"{self._name}Backward"
