"""Rows of the operation table, and the one node class that runs their gradient rules.

A row has a rule for each differentiable input. A rule is called ``rule(xp, grad, *saved, *params)`` and returns that
input's gradient; ``saved`` are arrays from the forward pass (``None`` where no needed rule uses it) and ``params`` are
plain values. In an ordinary pass ``xp`` is ``ARRAYS``, functions on arrays; when the pass itself is recorded it is
``TENSORS``, the same names on tensors. So one rule serves first and higher derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

from ...autograd.edges import gradient_edge
from ...autograd.grad_mode import is_grad_enabled
from ...autograd.node import Edges, Node
from ...autograd.packed import PACKED
from ...errors import AutogradError
from ...tensors import Tensor
from ...types import Array, Counter, DType

Rule: TypeAlias = Callable[..., Any]
Pull: TypeAlias = Callable[[SimpleNamespace, Any, Sequence[Any], Edges], Sequence[Any]]
# (array as the forward pass saw it, its tensor or None for a result of the node itself, counter, version then)
# or (number, the same number, anything, anything) for an operand that is a plain number,
# or (Packed, None, PACKED, 0) for what saved_tensors_hooks packed; None: not needed.
Saved: TypeAlias = "tuple[Any, Any, Counter, int] | None"

ARRAYS = SimpleNamespace()
TENSORS = SimpleNamespace()


class Row:
    """An operation of the table: its name and one gradient rule for each input (``None``: not differentiable).

    Instead of rules, ``pull(xp, grad, arguments, edges)`` may give the gradients of all inputs at once, for operations
    with any number of inputs and for rules that share work. Those of inputs whose edge is ``None`` are not used.
    ``view`` is the forward function of a view on arrays, to record it anew. Rules of holomorphic functions are written as
    for real numbers; ``holomorphic=False`` says that they are right as they stand for complex results too.
    """

    __slots__ = ("holomorphic", "name", "pull", "rules", "view")

    def __init__(
        self,
        name: str,
        *rules: Rule | None,
        view: Callable[..., Array] | None = None,
        pull: Pull | None = None,
        holomorphic: bool = True,
    ) -> None:
        self.name = "".join(part.capitalize() for part in name.strip("_").split("_")) + "Backward"
        self.rules = rules
        self.view = view
        self.pull = _pull(rules) if pull is None else pull
        self.holomorphic = holomorphic

    def of(self, dtype: DType) -> Row:
        """The row for results of ``dtype``: itself, unless that is complex or bfloat16."""
        if not self.holomorphic:
            return self
        return (
            self._around(_conjugated) if dtype.kind == "c" else self._around(_narrowed) if dtype.kind == "V" else self
        )

    def _around(self, wrapper: Callable[..., Sequence[Any]]) -> Row:
        inner = self.pull
        twin = Row(self.name, *self.rules, view=self.view, pull=lambda *arguments: wrapper(inner, *arguments))
        twin.name = self.name
        return twin


def _pull(rules: tuple[Rule | None, ...]) -> Pull:
    if None not in rules and len(rules) in (1, 2):
        return _pull_one(*rules) if len(rules) == 1 else _pull_two(*rules)
    return lambda xp, grad, arguments, edges: [
        None if edge is None or rule is None else rule(xp, grad, *arguments) for rule, edge in zip(rules, edges)
    ]


def _conjugated(inner: Pull, xp: SimpleNamespace, grad: Any, arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
    # PyTorch's convention: the gradient is that to the conjugate, so it is multiplied by conj(f'). A rule multiplies by f'.
    grads = inner(xp, xp.conj(grad), arguments, edges)
    return [None if each is None else xp.conj(each) for each in grads]


def _narrowed(inner: Pull, xp: SimpleNamespace, grad: Any, arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
    # NumPy computes bfloat16 with Python numbers in float32.
    return [None if each is None else xp.cast(each, grad.dtype) for each in inner(xp, grad, arguments, edges)]


# Hot: the usual one and two inputs have no loop, and element-wise rules no star, which alone is a tenth of a
# microsecond in each call.


def _pull_one(rule: Any) -> Pull:
    def pull(xp: SimpleNamespace, grad: Any, arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
        # The edge is there: else there were no node.
        return (rule(xp, grad, arguments[0]) if len(arguments) == 1 else rule(xp, grad, *arguments),)

    return pull


def _pull_two(first: Any, second: Any) -> Pull:
    def pull(xp: SimpleNamespace, grad: Any, arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
        one, two = edges[0], edges[1]
        if not arguments:
            return None if one is None else first(xp, grad), None if two is None else second(xp, grad)
        if len(arguments) == 2:
            a, b = arguments
            return None if one is None else first(xp, grad, a, b), None if two is None else second(xp, grad, a, b)
        return (
            None if one is None else first(xp, grad, *arguments),
            None if two is None else second(xp, grad, *arguments),
        )

    return pull


class OpNode(Node):
    """The node of one row, whose operation has one output."""

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
        """Run the rules on arrays; what was saved stays only if ``keep``."""
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
        """Replace what was saved."""
        if self.saved:
            self.saved = tuple([packed(entry, 0 if entry and entry[1] is None else None) for entry in self.saved])

    def name(self) -> str:
        """The row's name."""
        return self.row.name


class BroadcastNode(OpNode):
    """A node whose inputs were stretched or converted: each gradient is brought back to its input's shape and dtype."""

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
    """An entry for ``saved``: an input of the operation, as it is now (``array``: what it was converted to)."""
    counter = tensor._counter
    return (tensor._array if array is None else array, tensor, counter, counter[0])


def keep_result(result: Tensor) -> Saved:
    """An entry for ``saved``: the operation's own result. Its tensor is left out, or it would keep itself alive."""
    counter = result._counter
    return (result._array, None, counter, counter[0])


def saved_tensor(node: Node, entry: Saved, slot: int = 0) -> Any:
    """What was saved, as a tensor at its place in the graph; ``slot``: which result of the node it is, if it is one.

    Raises:
        AutogradError: it was modified in place.
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
    # Replaced or converted since: the value of then, at the place in the graph of now.
    edge = gradient_edge(tensor)
    if edge is not None and tensor._array.dtype is not array.dtype:
        edge = (BroadcastNode(_CONVERTED, (edge,), (), ((array.shape, tensor._array.dtype),)), 0)
    return Tensor(array, edge is not None, edge)


_CONVERTED = Row("converted", lambda xp, g: g)


def unpacked(node: Node, entry: Saved) -> Tensor:
    """The tensor of an entry whose version is not the saved one: because it was packed.

    Raises:
        AutogradError: or because it was modified in place.
    """
    if entry is None or entry[2] is not PACKED:
        raise modified(node.name(), entry)
    tensor: Tensor = entry[0].tensor(node)
    return tensor


def record(row: Row, result: Tensor, inputs: Sequence[Tensor | None], saved: tuple[Saved, ...], *params: Any) -> Tensor:
    """Make ``result`` the output of a new node of ``row``. The caller has seen that an input requires grad."""
    # A list first: a tuple from a generator costs twice as much.
    edges = tuple([None if tensor is None else tensor._edge or gradient_edge(tensor) for tensor in inputs])
    if result._array.dtype.kind != "f":
        row = row.of(result._array.dtype)
    result._edge = (OpNode(row, edges, saved, params), 0)
    result._requires_grad = True
    return result


def records(*tensors: Tensor) -> bool:
    """Whether an operation on these tensors is to be recorded."""
    if is_grad_enabled():
        for tensor in tensors:  # not any(): a generator costs more than all the rest
            if tensor._requires_grad:
                return True
    return False


def freed(name: str) -> AutogradError:
    """The error of a second pass over a graph that was not kept."""
    return AutogradError(
        f"{name} needs values that an earlier backward pass freed; to go over a graph twice, "
        "pass retain_graph=True to the first backward() or grad()"
    )


def modified(name: str, entry: Saved) -> AutogradError:
    """The error of a saved value that was changed in place."""
    assert entry is not None
    array, tensor, counter, number = entry
    which = "its result" if tensor is None else "an input"
    return AutogradError(
        f"{name} needs {which} (shape {array.shape}, {array.dtype}) as it was at version {number}, but it was modified "
        f"in place and is at version {counter[0]}; use the out-of-place form of the operation that changed it, or "
        "clone() before you change it"
    )
