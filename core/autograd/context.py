"""``FunctionContext``: the ``ctx`` of a custom function. It is owned by the function's node, and knows it weakly."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dtypes import is_inexact
from ..errors import AutogradError
from ..tensor import Tensor
from ..types import Counter, DType
from .hooks import Hook, RemovableHandle
from .packed import PACKED

if TYPE_CHECKING:
    from .function import FunctionNode
    from .node import Node


class OutputInfo(NamedTuple):
    """What a zero gradient of an output looks like."""

    shape: tuple[int, ...]
    dtype: DType


class SavedValue(NamedTuple):
    """A saved tensor. The function's own output is known weakly (``slot`` says which), anything else strongly."""

    tensor: Tensor | None
    output: weakref.ref[Tensor] | None
    slot: int
    array: Any
    counter: Counter
    version: int

    def packed(self, packed: Callable[[Any, int | None], Any]) -> SavedValue:
        """The same with what ``packed`` makes of an entry of it, as ``ops/table.py`` has them, in place of the array."""
        tensor = self.tensor if self.output is None else self.output()
        entry = packed((self.array, tensor, self.counter, self.version), None if self.output is None else self.slot)
        return SavedValue(None, None, self.slot, entry[0], entry[2], entry[3])


class FunctionContext:
    """What ``forward`` leaves for ``backward``: saved tensors, marks, and any attributes you set.

    Attributes:
        needs_input_grad: for each argument of ``forward``, whether its gradient is wanted.
        materialize_grads: whether ``backward`` gets zeros in place of a missing gradient (``set_materialize_grads``).
    """

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize_grads = True
        self._node: weakref.ref[FunctionNode] | None = None
        self._to_save: tuple[Tensor | None, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``backward``, where ``saved_tensors`` gives them back, the very same objects.

        Raises:
            TypeError: something else than a tensor or ``None``; set an attribute of ``ctx`` for that.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward() keeps tensors, not {type(tensor).__name__}; set an attribute of ctx for that"
                )
        self._to_save = tensors

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """These outputs require no grad."""
        self._non_differentiable = outputs

    def mark_dirty(self, *inputs: Tensor) -> None:
        """These arguments were changed in place, and are returned."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros (the default) or ``None`` for outputs without a gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What ``save_for_backward`` was given.

        Raises:
            AutogradError: it was freed, changed in place since, or died with the outputs.
        """
        node = self._living("saved_tensors")
        if node.saved is None:
            raise AutogradError(
                f"{node.name()} has freed its saved tensors in an earlier backward pass; "
                "pass retain_graph=True to that one to go over the graph again"
            )
        return tuple(_unpacked(node, value) for value in node.saved)

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The node's edges."""
        return self._living("next_functions").next_functions

    @property
    def metadata(self) -> dict[Any, Any]:
        """The node's dictionary for notes."""
        return self._living("metadata").metadata

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """``Node.register_hook`` of the node."""
        return self._living("register_hook").register_hook(hook)

    def register_prehook(self, hook: Hook) -> RemovableHandle:
        """``Node.register_prehook`` of the node."""
        return self._living("register_prehook").register_prehook(hook)

    def name(self) -> str:
        """The node's name."""
        return self._living("name").name()

    def adopt(self, node: FunctionNode, slot: int, output: Tensor, inputs: list[Tensor], earlier: list[Any]) -> Tensor:
        """``output`` as the node's output number ``slot``: itself where that is possible, else an alias."""
        if _among(output, self._non_differentiable) or not is_inexact(output.dtype):
            return output
        edge = (node, slot)
        if _among(output, self._dirty):
            # Its memory was changed by forward, which also counted that; here it only gets its history.
            from ..ops.table.in_place_history import check_writable, set_history

            check_writable(output)
            set_history(output, edge)
            return output
        if output._requires_grad or _among(output, inputs) or _among(output, earlier):
            alias = Tensor(output._array)
            alias._counter = output._counter
            output = alias
        output._edge, output._requires_grad = edge, True
        return output

    def take_saved(
        self, node: FunctionNode, outputs: tuple[Any, ...], results: tuple[Any, ...]
    ) -> tuple[SavedValue | None, ...]:
        """Hand what was saved over to the node, which owns it from now on."""
        self._node = weakref.ref(node)
        saved = tuple(_packed(tensor, outputs, results) for tensor in self._to_save)
        self._to_save = self._non_differentiable = self._dirty = ()
        return saved

    def _living(self, what: str) -> FunctionNode:
        if self._node is None:
            raise AutogradError(f"ctx.{what} exists once forward has returned and only if gradients are recorded")
        node = self._node()
        if node is None:
            raise AutogradError(
                f"ctx.{what} died with the outputs of this function: keep an output (or its grad_fn) as long as you "
                "use its context"
            )
        return node


def _packed(tensor: Tensor | None, outputs: tuple[Any, ...], results: tuple[Any, ...]) -> SavedValue | None:
    if tensor is None:
        return None
    counter = tensor._counter
    for slot, (output, result) in enumerate(zip(outputs, results)):
        # An input that is returned as it is stays an input: its alias is the output.
        if output is tensor and result is tensor:
            return SavedValue(None, weakref.ref(tensor), slot, tensor._array, counter, counter[0])
    return SavedValue(tensor, None, 0, tensor._array, counter, counter[0])


def _unpacked(node: FunctionNode, value: SavedValue | None) -> Tensor | None:
    if value is None:
        return None
    if value.counter is PACKED:
        unpacked: Tensor = value.array.tensor(node)
        return unpacked
    if value.counter[0] != value.version:
        raise AutogradError(
            f"{node.name()} saved a tensor of shape {value.array.shape} at version {value.version}, and it was "
            f"modified in place since (version {value.counter[0]}); use the out-of-place form, or clone() it first"
        )
    if value.output is None:
        return value.tensor
    alive = value.output()
    return Tensor(value.array, True, (node, value.slot)) if alive is None else alive


def _among(tensor: Tensor, tensors: Any) -> bool:
    return any(tensor is other for other in tensors)
