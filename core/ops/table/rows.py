"""Rows of the operation table: a name and gradient rules.

A row has a rule for each differentiable input. A rule is called ``rule(xp, grad, *saved, *params)`` and returns the
gradient of that input; ``saved`` are arrays from the forward pass (``None`` if no rule that runs uses them), ``params`` plain
values. In an ordinary backward pass ``xp`` is ``ARRAYS``, functions on arrays; when the pass itself is recorded it is
``TENSORS``, functions of the same names on tensors. So one rule serves first and higher derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

from ...autograd.node import Edges
from ...types import Array, DType

Rule: TypeAlias = Callable[..., Any]
Pull: TypeAlias = Callable[[SimpleNamespace, Any, Sequence[Any], Edges], Sequence[Any]]

ARRAYS = SimpleNamespace()
TENSORS = SimpleNamespace()


class Row:
    """Row of the operation table.

    Args:
        name: name of the operation; its node is called ``NameBackward``.
        rules: a gradient rule for each input; ``None`` if it is not differentiable.
        view: function on arrays that makes a view, to record the view again.
        pull: function instead of rules that returns the gradients of all inputs, ``pull(xp, grad, arguments, edges)``: for
            any number of inputs, or rules that share work. Gradients of inputs whose edge is ``None`` are not used.
        holomorphic: whether the rules are those of a holomorphic function, written as for real numbers; complex gradients
            are then conjugated before and after. Other rules are right for complex numbers as they are.
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
        """Return the row for results of ``dtype``: itself, unless that is complex or bfloat16."""
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
    # PyTorch's gradient is that with respect to the conjugate, so it is multiplied by conj(f'). A rule multiplies by f'.
    grads = inner(xp, xp.conj(grad), arguments, edges)
    return [None if each is None else xp.conj(each) for each in grads]


def _narrowed(inner: Pull, xp: SimpleNamespace, grad: Any, arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
    # NumPy computes bfloat16 with Python numbers in float32.
    return [None if each is None else xp.cast(each, grad.dtype) for each in inner(xp, grad, arguments, edges)]


# Hot: rows of one and two inputs have no loop, and rules of few arguments are called without a star, which costs a tenth of
# a microsecond in each call.


def _pull_one(rule: Any) -> Pull:
    def pull(xp: SimpleNamespace, grad: Any, arguments: Sequence[Any], edges: Edges) -> Sequence[Any]:
        # The edge is not None: without one there would be no node.
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
