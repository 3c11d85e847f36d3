"""``saved``: a plan as data: calls by name, with the shapes and dtypes of their results, constants and tensors.

``loading.py`` reads it. Values stand for themselves if a checkpoint can hold them; other parts are dicts with one key, which
says what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import ArgumentTypeError
from ..core.extend import Tensor
from .allowed import OBJECTS, name_of
from .program import number_in
from .recorded import Input, Recorded
from .rows import pull_row
from .values import Outer, Statement, Value, Wrapped, values_in

KIND, VERSION = "telegrad.plan", 2
_PLAIN = (type(None), bool, int, float, complex, str, np.ndarray)


def saved(
    recorded: Recorded, inputs: Sequence[Input], found: Sequence[Tensor], label: str, differentiable: Any
) -> dict[str, Any]:
    """Return a plan as an object that ``telegrad.save`` takes.

    Args:
        recorded: the program.
        inputs: the tensors among the arguments.
        found: the other tensors that it uses.
        label: name for readers.
        differentiable: the arguments of ``Plan.differentiable``, or ``None``.

    Raises:
        ArgumentTypeError: it calls what a saved plan may not call; the message names it.
    """
    values: dict[int, Value] = {}
    everything = (recorded.results, recorded.gradients, [each.given for each in recorded.backwards])
    for value in values_in(everything):
        values[value.number] = value
    for statement in recorded.statements:
        for value in [*statement.values(), *([] if statement.result is None else [statement.result])]:
            values[value.number] = value
    for strides, array in [(each.strides, each) for each in inputs] + [
        (each._array.strides, each._array) for each in found
    ]:
        if not is_dense(array.shape, strides, array.dtype.itemsize):
            raise _cannot("it uses a tensor whose elements overlap, or are not side by side; call contiguous() on it")
    return {
        "kind": KIND,
        "version": VERSION,
        "label": label,
        "inputs": [(each.shape, each.dtype.name, each.strides, each.requires_grad) for each in inputs],
        "tensors": [(_leaf(each), tuple(each._array.strides)) for each in found],
        "values": [_value(value) for value in values.values()],
        "statements": [_statement(each) for each in recorded.statements],
        "half": recorded.half,
        "arrays": [(number, outer.place, outer.found) for number, outer in recorded.arrays.items() if number in values],
        "results": encoded(recorded.results),
        "backwards": [
            (each.mask, each.start, [value.number for value in each.given], encoded(gradients))
            for each, gradients in zip(recorded.backwards, map(list, recorded.gradients))
        ],
        "differentiable": encoded(differentiable),
    }


def is_dense(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Return whether elements lie side by side, with the dimensions in any order."""
    expected = itemsize
    for step, length in sorted((step, length) for step, length in zip(strides, shape) if length > 1):
        if step != expected:
            return 0 in shape
        expected *= length
    return len(shape) == len(strides)


def laid_out(tensor: Tensor, strides: Sequence[int]) -> Tensor:
    """Return a tensor whose elements lie in memory as these strides say: itself, or a copy. Dimensions of length 1 may differ.

    Args:
        tensor: the tensor.
        strides: in bytes, of an array of its shape that ``is_dense``.
    """
    array = tensor._array
    if (
        all(length == 1 or one == two for length, one, two in zip(array.shape, array.strides, strides))
        or not array.size
    ):
        return tensor
    order = sorted(range(array.ndim), key=lambda dim: (-strides[dim], dim))
    copy = tensor.permute(order).contiguous().permute([order.index(dim) for dim in range(array.ndim)])
    return copy if tensor._edge is not None or copy._edge is None else copy.detach().requires_grad_()


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_(tensor._requires_grad)


def _value(value: Value) -> tuple[Any, ...]:
    if value.shape is None:
        return value.number, sorted(value.storages), None
    array = tuple(value.shape), value.dtype.name, tuple(value.strides), value.writeable
    return value.number, sorted(value.storages), array


def _statement(statement: Statement) -> tuple[Any, ...]:
    if statement.function is pull_row:
        raise _cannot(f"the gradient of {statement.args[0].name} is one call of the library; record it in no_grad()")
    return (
        statement.kind.name,
        _function(statement.function),
        encoded(statement.args),
        encoded(statement.kwargs),
        None if statement.result is None else statement.result.number,
        None if statement.target is None else statement.target.number,
        sorted(statement.uses),
        (statement.into, statement.escapes, statement.changes),
    )


def _function(function: Any) -> str:
    name = name_of(function)
    if function is number_in:
        raise _cannot("it returns a number that item() reads; return the tensor")
    if name is None:
        raise _cannot(f"it calls {getattr(function, '__qualname__', function)}()")
    return name


def encoded(tree: Any) -> Any:
    """Return arguments or results as an object that a checkpoint can hold.

    Raises:
        ArgumentTypeError: there is an object that it cannot hold.
    """
    kind = type(tree)
    if kind in _PLAIN or isinstance(tree, np.generic):
        return tree
    if kind is Value:
        return {"value": tree.number}
    if kind is Wrapped:
        return {"wrapped": (tree.value.number, tree.requires_grad)}
    if kind is Outer:
        return {"outer": (tree.place, tree.found)}
    if kind is slice:
        return {"slice": [encoded(each) for each in (tree.start, tree.stop, tree.step)]}
    if kind is dict:
        return {"dict": [(key, encoded(each)) for key, each in tree.items()]}
    if kind in (tuple, list) or getattr(kind, "__name__", "") == "Size":
        return (list if kind is list else tuple)([encoded(each) for each in tree])
    if kind.__name__ in OBJECTS and OBJECTS[kind.__name__][0] is kind:
        return {"object": (kind.__name__, [encoded(each) for each in OBJECTS[kind.__name__][1](tree)])}
    if tree is Ellipsis:
        return {"ellipsis": True}
    if isinstance(tree, np.dtype):
        return {"dtype": tree.name}
    if isinstance(tree, type) and issubclass(tree, np.generic):
        return {"type": np.dtype(tree).name}
    if callable(tree):
        return {"function": _function(tree)}
    raise _cannot(f"an argument is of the class {kind.__name__}")


def _cannot(reason: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"the plan cannot be saved: {reason}; a file holds functions of tensors, and neither objects nor what changes them, as "
        "steps of optimizers do"
    )
