"""Operations with several results: one node, of which each result is an output.

Their rules get the gradients of all results as a tuple, with ``None`` for those that were not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.graph import gradient_edge
from ..tensor import Tensor
from .table import OpNode, Row, Saved, keep_result, modified


class SeveralNode(OpNode):
    """The node of an operation with several results; what it saved are the results, in order, and then inputs."""

    __slots__ = ("num_inputs",)

    num_inputs: int  # how many results there are

    def apply(self, grads: Sequence[Any]) -> list[Any]:
        """Run the rules on arrays."""
        return super().apply((tuple(grads),))

    def apply_graph(self, grads: Sequence[Any]) -> list[Any]:
        """Run the same rules on tensors."""
        return super().apply_graph((tuple(grads),))

    def _saved_tensor(self, index: int) -> Any:
        entry = (self.saved or ())[index]
        if index >= self.num_inputs or entry is None:
            return super()._saved_tensor(index)
        array, _, counter, version = entry
        if counter[0] != version:
            raise modified(self.name(), entry)
        return Tensor(array, True, (self, index))


def record_several(
    row: Row, results: Sequence[Tensor], inputs: Sequence[Tensor], saved: tuple[Saved, ...] = (), *params: Any
) -> None:
    """Make ``results`` the outputs of one new node, which saves them, and whatever ``saved`` holds of the inputs."""
    kept = (*(keep_result(result) for result in results), *saved)
    node = SeveralNode(row, tuple(gradient_edge(tensor) for tensor in inputs), kept, params)
    node.num_inputs = len(results)
    for slot, result in enumerate(results):
        result._edge, result._requires_grad = (node, slot), True
