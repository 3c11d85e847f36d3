"""Nodes of operations with one result, which run the gradient rules of their row, and the values that they save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

from ....base.errors import AutogradError
from ...autograd.edges import gradient_edge
from ...autograd.grad_mode import is_grad_enabled
from ...autograd.node import Edges, Node
from ...autograd.packed import PACKED
from ...tensors import Tensor
from ...types import Array, Counter, DType
from .rows import ARRAYS, TENSORS, Row

# (array in the forward pass, its tensor or None for a result of the node itself, version counter, version then)
# or (number, the same number, anything, anything) for an operand that is a plain number,
# or (Packed, None, PACKED, 0) for a value that saved_tensors_hooks packed; None: not needed.
Saved: TypeAlias = "tuple[Any, Any, Counter, int] | None"


class OpNode(Node):
    """Node of an operation with one output.

    Attributes:
        row: the operation's row, with the gradient rules.
        next_edges: gradient edges of the inputs; ``None`` for inputs without gradient.
        saved: values from the forward pass; ``None`` when they have been freed.
        params: further arguments of the rules.
    """

    __slots__ = ("params", "row", "saved")

    num_inputs = 1
    tape = True

    def __init__(
        self, row: Row, next_edges: Edges, saved: tuple[Saved, ...] | None = (), params: tuple[Any, ...] = ()
    ) -> None:
        self.row = row
        self.next_edges = next_edges
        self.saved = saved
        self.params = params
        self._hooks = None
        self._metadata = None

    def pull(self, grad: Any, keep: bool) -> Sequence[Any]:
        """Run the rules on arrays; free the saved values unless ``keep``."""
        # Hot: written out rather than shared with pull_graph.
        saved = self.saved
        arguments: Any = self.params
        if saved:
            values: list[Any] = []
            for entry in saved:
                if entry is None:
                    values.append(None)
                elif entry[2][0] == entry[3]:
                    values.append(entry[0])
                else:
                    values.append(unpacked(self, entry)._array)
            arguments = (*values, *arguments) if arguments else values
            if not keep:
                self.saved = None
        elif saved is None:
            raise freed(self.name())
        return self.row.pull(ARRAYS, grad, arguments, self.next_edges)

    def pull_graph(self, grad: Any) -> Sequence[Any]:
        """Run the same rules on tensors."""
        if self.saved is None:
            raise freed(self.name())
        arguments = [*(saved_tensor(self, entry) for entry in self.saved), *self.params]
        return self.row.pull(TENSORS, grad, arguments, self.next_edges)

    def pack_saved(self, packed: Callable[[Any, int | None], Any]) -> None:
        """Replace the saved values by packed ones."""
        if self.saved:
            self.saved = tuple([packed(entry, 0 if entry and entry[1] is None else None) for entry in self.saved])

    def name(self) -> str:
        """Return the row's name."""
        return self.row.name


class BroadcastNode(OpNode):
    """Node whose inputs were broadcast or converted: it fits each gradient to the shape and dtype of its input.

    Attributes:
        targets: shape and dtype of each input; ``None`` for inputs that were neither broadcast nor converted.
    """

    __slots__ = ("targets",)

    def __init__(
        self,
        row: Row,
        next_edges: Edges,
        saved: tuple[Saved, ...] | None,
        targets: tuple[tuple[tuple[int, ...], DType] | None, ...],
        params: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(row, next_edges, saved, params)
        self.targets = targets

    def pull(self, grad: Any, keep: bool) -> Sequence[Any]:
        """Run the rules on arrays, and fit the results."""
        return self._fitted(ARRAYS, super().pull(grad, keep))

    def pull_graph(self, grad: Any) -> Sequence[Any]:
        """Run the rules on tensors, and fit the results."""
        return self._fitted(TENSORS, super().pull_graph(grad))

    def _fitted(self, xp: SimpleNamespace, results: Sequence[Any]) -> Sequence[Any]:
        return [
            grad if grad is None or target is None else xp.fit(grad, *target)
            for grad, target in zip(results, self.targets)
        ]


def keep(tensor: Tensor, array: Array | None = None) -> Saved:
    """Return the entry of ``saved`` for an input of the operation, as it is now; ``array`` is its converted value, if any."""
    counter = tensor._counter
    return (tensor._array if array is None else array, tensor, counter, counter[0])


def keep_result(result: Tensor) -> Saved:
    """Return the entry of ``saved`` for the operation's result, without its tensor, which would keep itself alive."""
    counter = result._counter
    return (result._array, None, counter, counter[0])


def saved_tensor(node: Node, entry: Saved, slot: int = 0) -> Any:
    """Return a saved value, as a tensor with its edge in the graph.

    Args:
        node: the node that saved it.
        entry: its entry in ``saved``.
        slot: number of the output of the node, if the value is a result.

    Raises:
        AutogradError: the value was modified in place.
    """
    if entry is None:
        return None
    array, tensor, counter, number = entry
    if tensor is array:
        return array  # a plain number
    if counter[0] != number:
        return unpacked(node, entry)
    if tensor is None:
        return Tensor(array, True, (node, slot))
    if tensor._array is array:
        return tensor
    # The tensor's array was replaced, or converted before it was saved: the saved value, with the tensor's current edge.
    edge = gradient_edge(tensor)
    if edge is not None and tensor._array.dtype is not array.dtype:
        edge = (BroadcastNode(_CONVERTED, (edge,), (), ((array.shape, tensor._array.dtype),)), 0)
    return Tensor(array, edge is not None, edge)


_CONVERTED = Row("converted", lambda xp, g: g)


def unpacked(node: Node, entry: Saved) -> Tensor:
    """Return the tensor of a packed entry.

    Raises:
        AutogradError: the entry is not packed: its version differs because the value was modified in place.
    """
    if entry is None or entry[2] is not PACKED:
        raise modified(node.name(), entry)
    tensor: Tensor = entry[0].tensor(node)
    return tensor


def record(row: Row, result: Tensor, inputs: Sequence[Tensor | None], saved: tuple[Saved, ...], *params: Any) -> Tensor:
    """Make ``result`` the output of a new node, and return it. The caller has checked that an input requires grad.

    Args:
        row: the operation's row.
        result: result of the operation.
        inputs: inputs of the operation; ``None`` for those without gradient.
        saved: entries of ``keep`` and ``keep_result``.
        params: further arguments of the rules.
    """
    # A list first: a tuple from a generator costs twice as much.
    edges = tuple([None if tensor is None else tensor._edge or gradient_edge(tensor) for tensor in inputs])
    if result._array.dtype.kind != "f":
        row = row.of(result._array.dtype)
    result._edge = (OpNode(row, edges, saved, params), 0)
    result._requires_grad = True
    return result


def records(*tensors: Tensor) -> bool:
    """Return whether an operation on these tensors is to be recorded."""
    if is_grad_enabled():
        for tensor in tensors:  # not any(): a generator costs more than all the rest
            if tensor._requires_grad:
                return True
    return False


def freed(name: str) -> AutogradError:
    """Return the error of a second backward pass over a graph that was not retained."""
    return AutogradError(
        f"{name} needs values that an earlier backward pass freed; to run backward through a graph twice, "
        "pass retain_graph=True to the first backward() or grad()"
    )


def modified(name: str, entry: Saved) -> AutogradError:
    """Return the error of a saved value that was changed in place."""
    assert entry is not None
    array, tensor, counter, number = entry
    which = "its result" if tensor is None else "an input"
    return AutogradError(
        f"{name} needs {which} (shape {array.shape}, {array.dtype}) as it was at version {number}, but it was modified "
        f"in place and is at version {counter[0]}; use the out-of-place form of the operation that changed it, or "
        "clone() before you change it"
    )


def record_fitted(row: Row, result: Tensor, inputs: Sequence[Any], saved: tuple[Saved, ...], *params: Any) -> Tensor:
    """Record ``result`` if an input requires grad, and return it; gradients are fitted to their inputs' shapes and dtypes.

    Args:
        row: the operation's row.
        result: result of the operation.
        inputs: tensors and numbers.
        saved: entries of ``keep`` and ``keep_result``.
        params: further arguments of the rules.
    """
    if not is_grad_enabled() or not any(isinstance(each, Tensor) and each._requires_grad for each in inputs):
        return result
    edges = tuple(gradient_edge(each) if isinstance(each, Tensor) else None for each in inputs)
    targets = tuple(
        None if edge is None else (each._array.shape, each._array.dtype) for each, edge in zip(inputs, edges)
    )
    node = BroadcastNode(row.of(result._array.dtype), edges, saved, targets, params)
    result._edge, result._requires_grad = (node, 0), True
    return result
