"""Nodes of operations with more than one result: each result is an output of one node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ...autograd.edges import gradient_edge
from ...autograd.node import Edges, Node
from ...tensors import Tensor
from .nodes import Saved, freed, keep_result, saved_tensor, unpacked
from .rows import ARRAYS, TENSORS, Row

# rule(xp, gradients, *results, *params) returns the gradient of the one input; gradients of unused results are None.
OutputsRule = Callable[..., Any]


class OutputsNode(Node):
    """Node of an operation with more than one result; its row's ``pull`` takes the gradients of all as a sequence.

    Attributes:
        row: the operation's row.
        next_edges: gradient edges of the inputs; ``None`` for inputs without gradient.
        outputs: number of results.
        saved: entries of ``keep`` for inputs, or of ``keep_result`` for all results in order.
        params: further arguments of the row's ``pull``.
        computed: other values of the forward pass, the last argument of ``pull`` unless ``None``; freed when ``saved`` is
            released or packed.
    """

    __slots__ = ("computed", "params", "row", "saved")

    def __init__(
        self,
        row: Row,
        next_edges: Edges,
        outputs: int,
        saved: tuple[Saved, ...] = (),
        params: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(next_edges, outputs)
        self.row, self.params = row, params
        self.saved: tuple[Saved, ...] | None = saved
        self.computed: Any = None

    def apply(self, grads: Sequence[Any]) -> Sequence[Any]:
        """Run the rules on arrays."""
        return self._pull(ARRAYS, grads, self._array)

    def apply_graph(self, grads: Sequence[Any]) -> Sequence[Any]:
        """Run the same rules on tensors."""
        return self._pull(TENSORS, grads, self._tensor)

    def _pull(self, xp: SimpleNamespace, grads: Sequence[Any], value: Callable[[Saved, int], Any]) -> Sequence[Any]:
        for grad in grads:
            if grad is not None:
                break
        else:
            return (None,) * len(self.next_edges)
        if self.saved is None:
            raise freed(self.name())
        arguments: Sequence[Any] = self.params
        if self.saved:
            arguments = [*[value(entry, slot) for slot, entry in enumerate(self.saved)], *self.params]
            if self.computed is not None:
                arguments.append(self.computed)
        return self.row.pull(xp, grads, arguments, self.next_edges)

    def _array(self, entry: Saved, slot: int) -> Any:
        if entry is None or entry[2][0] == entry[3]:
            return entry and entry[0]
        return unpacked(self, entry)._array

    def _tensor(self, entry: Saved, slot: int) -> Any:
        return saved_tensor(self, entry, slot)

    def pack_saved(self, pack: Callable[[Any, int | None], Any]) -> None:
        """Replace the saved values by packed ones, and free all others of the forward pass."""
        if self.saved:
            results = [slot if entry and entry[1] is None else None for slot, entry in enumerate(self.saved)]
            self.saved = tuple(pack(entry, slot) for entry, slot in zip(self.saved, results))
            self.computed = None

    def release(self) -> None:
        """Free the values of the forward pass, unless none were saved."""
        if self.saved:
            self.saved = self.computed = None

    def name(self) -> str:
        """Return the row's name."""
        return self.row.name


def record_outputs(name: str, rule: OutputsRule, results: Sequence[Tensor], input: Tensor, *params: Any) -> None:
    """Make ``results`` the outputs of one new node, which saves them for ``rule``.

    Args:
        name: name of the operation; its node is called ``NameBackward``.
        rule: gradient rule, see ``OutputsRule``.
        results: results of the operation.
        input: the only input with a gradient.
        params: further arguments of the rule.
    """
    row = Row(name, pull=lambda xp, grads, arguments, edges: (rule(xp, grads, *arguments),))
    saved = tuple(keep_result(result) for result in results)
    node = OutputsNode(row, (gradient_edge(input),), len(results), saved, params)
    for slot, result in enumerate(results):
        result._edge, result._requires_grad = (node, slot), True
