"""Calls of a function on copies of its arguments that record, and the decision whether the results go on recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core import Tensor, autograd, enable_grad
from .trees import checked, leaves, replaced


class Recorded(NamedTuple):
    """A function's result, and what it was computed of.

    Attributes:
        result: the tree of tensors that the function returned.
        outputs: its tensors.
        aux: what the function returned beside it, or ``None``.
        inputs: the tensors that stand for those to differentiate by.
        nested: whether the results are part of an outer derivative, and must record in turn.
    """

    result: Any
    outputs: list[Tensor]
    aux: Any
    inputs: list[Tensor]
    nested: bool

    def released(self, tree: Any) -> Any:
        """Return a tree without the graph, unless an outer derivative needs it."""
        return tree if self.nested else replaced(tree, [tensor.detach() for tensor in leaves(tree)])


def record(func: Callable[..., Any], arguments: Sequence[Any], has_aux: bool) -> Recorded:
    """Call ``func`` with aliases of the tensors in ``arguments``, in recorded mode.

    Args:
        func: returns a tree of tensors; if ``has_aux``, a pair of it and anything.
        arguments: its positional arguments: trees of tensors.
        has_aux: whether ``func`` returns a pair.

    Raises:
        TypeError: ``has_aux``, and ``func`` did not return a pair.
        ValueError: an argument or the result is not a tree of tensors.
    """
    names = [f"argument {number} to differentiate by" for number in range(len(arguments))]
    given = [tensor for name, argument in zip(names, arguments) for tensor in checked(argument, name)]
    # Of a tensor that records already, an alias in its graph: so that an outer derivative goes through it.
    inputs = [each.view_as(each) if each.requires_grad else each.detach().requires_grad_() for each in given]
    with enable_grad():
        returned = func(*replaced(list(arguments), inputs))
    if has_aux and not (isinstance(returned, tuple) and len(returned) == 2):
        raise TypeError(f"has_aux=True needs a function that returns (output, aux), and it returned {returned!r}")
    result, aux = returned if has_aux else (returned, None)
    outputs = checked(result, "the result of the function")
    return Recorded(result, outputs, aux, inputs, autograd.reached(outputs, inputs).others)
