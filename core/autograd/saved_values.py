"""The tensors that a custom function saves for its backward: ``SavedValue``, and ``SavingNode``, which owns them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ...base.errors import AutogradError
from ..tensors import Tensor
from ..types import Counter
from .node import Edges, Node
from .packed import PACKED


class SavedValue(NamedTuple):
    """A saved tensor. The function's own output (number ``slot``) is referred to weakly, any other tensor strongly."""

    tensor: Tensor | None
    output: weakref.ref[Tensor] | None
    slot: int
    array: Any
    counter: Counter
    version: int

    def packed(self, pack: Callable[[Any, int | None], Any]) -> SavedValue:
        """Return this value with ``pack(entry, slot)`` in place of its array; entries are those of ``keep``."""
        tensor = self.tensor if self.output is None else self.output()
        entry = pack((self.array, tensor, self.counter, self.version), None if self.output is None else self.slot)
        return SavedValue(None, None, self.slot, entry[0], entry[2], entry[3])


class SavingNode(Node):
    """A node that owns saved tensors."""

    __slots__ = ("saved",)

    def __init__(self, next_edges: Edges, num_inputs: int) -> None:
        super().__init__(next_edges, num_inputs)
        self.saved: tuple[SavedValue | None, ...] | None = None

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to ``ctx.save_for_backward``.

        Raises:
            AutogradError: they were freed, or changed in place since.
        """
        if self.saved is None:
            raise AutogradError(
                f"{self.name()} has freed its saved tensors in an earlier backward pass; "
                "pass retain_graph=True to that one to go over the graph again"
            )
        return tuple(None if value is None else self._tensor(value) for value in self.saved)

    def _tensor(self, value: SavedValue) -> Tensor | None:
        if value.counter is PACKED:
            unpacked: Tensor = value.array.tensor(self)
            return unpacked
        if value.counter[0] != value.version:
            raise AutogradError(
                f"{self.name()} saved a tensor of shape {value.array.shape} at version {value.version}, and it was "
                f"modified in place since (version {value.counter[0]}); use the out-of-place form, or clone() it first"
            )
        if value.output is None:
            return value.tensor
        alive = value.output()
        return Tensor(value.array, True, (self, value.slot)) if alive is None else alive

    def pack_saved(self, pack: Callable[[Any, int | None], Any]) -> None:
        """Replace each saved tensor by its packed form."""
        self.saved = self.saved and tuple(value and value.packed(pack) for value in self.saved)

    def release(self) -> None:
        """Free the saved tensors."""
        if self.saved:
            self.saved = None


def saved_value(tensor: Tensor | None, outputs: tuple[Any, ...], results: tuple[Any, ...]) -> SavedValue | None:
    """Return the record of a tensor to save.

    Args:
        tensor: the tensor; ``None`` gives ``None``.
        outputs: what ``forward`` returned.
        results: the same after the node adopted it: an input that is returned is there as an alias.
    """
    if tensor is None:
        return None
    counter = tensor._counter
    for slot, (output, result) in enumerate(zip(outputs, results)):
        # An input that is returned stays an input: its alias is the output.
        if output is tensor and result is tensor:
            return SavedValue(None, weakref.ref(tensor), slot, tensor._array, counter, counter[0])
    return SavedValue(tensor, None, 0, tensor._array, counter, counter[0])
