"""``FunctionContext``: the ``ctx`` of a custom function. The function's node owns it, and it refers to the node weakly."""

from __future__ import annotations

import weakref
from typing import Any

from ...base.errors import AutogradError
from ..dtypes import is_inexact
from ..ops.table.in_place_history import check_writable, set_history
from ..tensors import Tensor
from .hooks import Hook, RemovableHandle
from .node import Node
from .saved_values import SavedValue, SavingNode, saved_value


class FunctionContext:
    """Storage for what ``backward`` needs of ``forward``: saved tensors, marks, and any attributes that you set.

    Attributes:
        needs_input_grad: for each argument of ``forward``, whether its gradient is wanted.
        materialize_grads: whether ``backward`` gets zeros in place of a missing gradient (``set_materialize_grads``).
    """

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize_grads = True
        self._node: weakref.ref[SavingNode] | None = None
        self._to_save: tuple[Tensor | None, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors for ``backward``, where ``saved_tensors`` returns the same objects.

        Raises:
            TypeError: an argument is neither a tensor nor ``None``.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward() saves tensors, not {type(tensor).__name__}; set an attribute of ctx for that"
                )
        self._to_save = tensors

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare that these outputs require no grad."""
        self._non_differentiable = outputs

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Declare that ``forward`` changes these arguments in place and returns them."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether ``backward`` gets zeros (the default) or ``None`` for outputs without a gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to ``save_for_backward``.

        Raises:
            AutogradError: they were freed, changed in place since, or died with the outputs.
        """
        return self._living("saved_tensors").saved_tensors

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The node's edges."""
        return self._living("next_functions").next_functions

    @property
    def metadata(self) -> dict[Any, Any]:
        """The node's dictionary for notes."""
        return self._living("metadata").metadata

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``register_hook`` of the node."""
        return self._living("register_hook").register_hook(hook)

    def register_prehook(self, hook: Hook) -> RemovableHandle:
        """Call ``register_prehook`` of the node."""
        return self._living("register_prehook").register_prehook(hook)

    def name(self) -> str:
        """Return the node's name."""
        return self._living("name").name()

    def adopt(self, node: Node, slot: int, output: Tensor, inputs: list[Tensor], earlier: list[Any]) -> Tensor:
        """Return ``output`` as an output of the node: the tensor itself where that is possible, else an alias.

        Args:
            node: the function's node.
            slot: the number of the output.
            output: a tensor that ``forward`` returned.
            inputs: the tensors among the arguments of ``forward``.
            earlier: the outputs that were adopted before.
        """
        if _among(output, self._non_differentiable) or not is_inexact(output.dtype):
            return output
        edge = (node, slot)
        if _among(output, self._dirty):
            # forward changed its memory, and counted that; here it only gets its history.
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
        self, node: SavingNode, outputs: tuple[Any, ...], results: tuple[Any, ...]
    ) -> tuple[SavedValue | None, ...]:
        """Return the records of the saved tensors, which the node owns from now on.

        Args:
            node: the function's node.
            outputs: what ``forward`` returned.
            results: the same after ``adopt``.
        """
        self._node = weakref.ref(node)
        saved = tuple(saved_value(tensor, outputs, results) for tensor in self._to_save)
        self._to_save = self._non_differentiable = self._dirty = ()
        return saved

    def _living(self, attribute: str) -> SavingNode:
        if self._node is None:
            raise AutogradError(f"ctx.{attribute} exists once forward has returned and only if gradients are recorded")
        node = self._node()
        if node is None:
            raise AutogradError(
                f"ctx.{attribute} died with the outputs of this function: keep an output (or its grad_fn) as long as "
                "you use its context"
            )
        return node


def _among(tensor: Tensor, tensors: Any) -> bool:
    return any(tensor is other for other in tensors)
