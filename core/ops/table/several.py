"""Operations with several results: one node, of which each result is an output.

Their rules get the gradients of all results as a tuple, with ``None`` for those that were not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.edges import gradient_edge
from ...autograd.node import Node
from ...tensors import Tensor
from .nodes import ARRAYS, TENSORS, Saved, freed, keep_result, saved_tensor

# rule(xp, gradients, *results, *params): the gradient of the one input.
SeveralRule = Callable[..., Any]


class SeveralNode(Node):
    """The node of an operation on one tensor with several results, which it saves."""

    __slots__ = ("_name", "_params", "_rule", "_saved")

    def __init__(self, name: str, rule: SeveralRule, input: Tensor, results: Sequence[Tensor], params: Any) -> None:
        super().__init__((gradient_edge(input),), len(results))
        self._name, self._rule, self._params = name, rule, params
        self._saved: tuple[Saved, ...] | None = tuple(keep_result(result) for result in results)

    def apply(self, grads: Sequence[Any]) -> list[Any]:
        """Run the rule on arrays."""
        if all(grad is None for grad in grads):
            return [None]
        results = [each._array for each in self._results()]
        return [self._rule(ARRAYS, grads, *results, *self._params)]

    def apply_graph(self, grads: Sequence[Any]) -> list[Any]:
        """Run the same rule on tensors."""
        if all(grad is None for grad in grads):
            return [None]
        return [self._rule(TENSORS, grads, *self._results(), *self._params)]

    def pack_saved(self, packed: Callable[[Any, int | None], Any]) -> None:
        """Replace the results."""
        self._saved = self._saved and tuple(packed(entry, slot) for slot, entry in enumerate(self._saved))

    def _results(self) -> list[Tensor]:
        if self._saved is None:
            raise freed(self.name())
        return [saved_tensor(self, entry, slot) for slot, entry in enumerate(self._saved)]

    def release(self) -> None:
        """Forget the results."""
        self._saved = None

    def name(self) -> str:
        """The operation's name."""
        return self._name


def record_several(name: str, rule: SeveralRule, results: Sequence[Tensor], input: Tensor, *params: Any) -> None:
    """Make ``results`` the outputs of one new node."""
    node = SeveralNode(name, rule, input, results, params)
    for slot, result in enumerate(results):
        result._edge, result._requires_grad = (node, slot), True
