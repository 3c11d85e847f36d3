"""``fused``: an operation whose passes over arrays are written by hand, in one node, however many outputs it has.

For what would otherwise be hundreds of nodes, as a layer of an LSTM is. A pass that is itself recorded goes another way: it
*replays* the operation by ordinary ones, and differentiates those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ..autograd.edges import gradient_edge
from ..autograd.node import Node
from ..tensor import Tensor
from ..types import Array
from .shaping import view_as
from .table import Saved, freed, keep, modified

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
        self.saved: tuple[Saved, ...] = tuple(None if tensor is None else keep(tensor) for tensor in inputs)

    def apply(self, grads: Sequence[Array | None]) -> Sequence[Array | None]:
        """The gradients of the inputs, by hand."""
        self._check(*self.saved, *self.computed)
        assert self._backward is not None
        if all(grad is None for grad in grads):
            return (None,) * len(self.next_edges)
        return self._backward(grads, [edge is not None for edge in self.next_edges])

    def apply_graph(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """The same by ordinary operations, recorded."""
        from ..autograd.passes import grad as gradients

        self._check(*self.saved)
        # Aliases, so that no gradient goes round through what one input owes to another.
        inputs = [None if entry is None else view_as(entry[1], entry[1]) for entry in self.saved]
        wanted = [alias for alias, edge in zip(inputs, self.next_edges) if alias is not None and edge is not None]
        used = [(output, grad) for output, grad in zip(self._replay(*inputs), grads) if grad is not None]
        if not used:
            return (None,) * len(inputs)
        outputs, given = zip(*used)
        found = iter(gradients(outputs, wanted, given, create_graph=True, allow_unused=True))
        return [None if edge is None else next(found) for edge in self.next_edges]

    def _check(self, *entries: Saved) -> None:
        if self._backward is None:
            raise freed(self.name())
        for entry in entries:
            if entry is not None and entry[2][0] != entry[3]:
                raise modified(self.name(), entry)

    def release(self) -> None:
        """Forget the forward pass."""
        self._backward = None
        self.saved = self.computed = ()

    def name(self) -> str:
        """The operation's name."""
        return f"{self._name}Backward"
