"""``check_size``: how large the result of a saved plan's call can be, from the shapes of its arguments, before it runs.

A forged plan may say of a call that its result is small. So the size is computed here by the rules of each function; and a
replay of a loaded plan checks the shapes that were declared, on which the next call's size depends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .values import Outer, Statement, Value, Wrapped, values_in

Shape = tuple[int, ...]
_WIDEST = 16  # bytes of an element, where the dtype of the result is not declared


def check_size(name: str, statement: Statement, tensors: Callable[[Outer], Shape], memory: int) -> None:
    """Raise if the result of a call may need more memory than is allowed.

    Args:
        name: of the function, as in ``allowed.functions``.
        statement: the call.
        tensors: returns the shape of a tensor that is named as a whole.
        memory: bytes.

    Raises:
        ValueError: it may.
    """
    shapes = list(_shapes(statement.args, tensors)) + list(_shapes(statement.kwargs, tensors))
    ufunc = getattr(np, name, None)
    if (isinstance(ufunc, np.ufunc) and ufunc.signature is None) or name in _BROADCAST:
        size = prod(np.broadcast_shapes(*shapes))
    elif name.endswith("outer") or name in _PRODUCTS or (name == "call_whole" and _grows(statement)):
        size = prod(prod(shape) for shape in shapes)
    elif (rule := _RULES.get(name)) is not None and shapes:
        size = rule(statement, shapes)
    else:
        size = sum(prod(shape) for shape in shapes)  # parts, copies and sums
    result = statement.result
    itemsize = _WIDEST if result is None or result.dtype is None else result.dtype.itemsize
    if size * itemsize > memory:
        raise ValueError(f"a call of {name} makes {size:,} elements; pass load_plan(..., memory=) if you trust it")


_BROADCAST = frozenset(["where", "clip", "isclose", "cross", "choose", "ndarray.choose", "ndarray.clip"])
_PRODUCTS = frozenset(["kron"])
# Operations that run as a whole, and whose result may have as many elements as the product of their arguments'.
_GROWING = {
    *(
        "outer",
        "ger",
        "addr",
        "kron",
        "cdist",
        "cartesian_prod",
        "combinations",
        "meshgrid",
        "block_diag",
        "diag",
        "diagflat",
    ),
    *("diag_embed", "vander", "one_hot", "tensordot", "einsum", "repeat_interleave", "take", "take_along_dim"),
}


def _grows(statement: Statement) -> bool:
    return bool(statement.args) and getattr(statement.args[0], "__name__", "") in _GROWING


def _shapes(tree: Any, tensors: Callable[[Outer], Shape]) -> Sequence[Shape]:
    """Return the shapes of the arrays among arguments."""
    kind = type(tree)
    if kind is Value or kind is Wrapped:
        value = tree if kind is Value else tree.value
        return [] if value.shape is None else [tuple(value.shape)]
    if kind is Outer:
        return [tensors(tree)]
    if isinstance(tree, np.ndarray):
        return [tree.shape]
    if isinstance(tree, (tuple, list)):
        return [shape for each in tree for shape in _shapes(each, tensors)]
    return _shapes(list(tree.values()), tensors) if isinstance(tree, dict) else []


def _shape_of(each: Any) -> Shape:
    return tuple(each.shape) if type(each) is Value and each.shape is not None else np.shape(each)


def _matmul(statement: Statement, shapes: Sequence[Shape]) -> int:
    one, two = shapes[:2]
    batch = np.broadcast_shapes(one[:-2], two[:-2])
    return prod(batch) * prod(one[-2:-1]) * (two[-1] if len(two) > 1 else 1)


def _dot(statement: Statement, shapes: Sequence[Shape]) -> int:
    one, two = shapes[:2]
    return prod(one[:-1]) * prod(two[:-2]) * (two[-1] if len(two) > 1 else 1) if one and two else prod(one) * prod(two)


def _inner(statement: Statement, shapes: Sequence[Shape]) -> int:
    return prod(prod(shape[:-1]) for shape in shapes[:2])


def _tensordot(statement: Statement, shapes: Sequence[Shape]) -> int:
    axes = statement.args[2] if len(statement.args) > 2 else statement.kwargs.get("axes", 2)
    one, two = shapes[:2]
    summed = one[len(one) - axes :] if isinstance(axes, int) else [one[axis] for axis in np.atleast_1d(axes[0])]
    return int(prod(one) * prod(two) // max(prod(summed), 1) ** 2)


def _einsum(statement: Statement, shapes: Sequence[Shape]) -> int:
    labels = statement.args[0]
    if not isinstance(labels, str) or "->" not in labels:
        return prod(prod(shape) for shape in shapes)
    given, _, result = labels.replace(" ", "").partition("->")
    lengths: dict[str, int] = {}
    for part, shape in zip(given.split(","), shapes):
        if "." in part:
            return prod(prod(each) for each in shapes)
        for label, length in zip(part, shape):
            lengths[label] = max(length, lengths.get(label, 1))
    return prod(lengths.get(label, 1) for label in result)


def _take(statement: Statement, shapes: Sequence[Shape]) -> int:
    axis = statement.args[2] if len(statement.args) > 2 else statement.kwargs.get("axis")
    count = prod(_shape_of(statement.args[1])) if len(statement.args) > 1 else prod(shapes[-1])
    return count if axis is None else count * prod(shapes[0]) // max(shapes[0][axis], 1)


def _getitem(statement: Statement, shapes: Sequence[Shape]) -> int:
    """Return the elements that an index chooses: of arrays together, times those of the dimensions that slices leave."""
    index = statement.args[1] if type(statement.args[1]) is tuple else (statement.args[1],)
    lengths, size = list(shapes[0]), 1
    arrays: list[Shape] = [()]
    used = sum(_dimensions(each) for each in index)
    for each in index:
        if each is Ellipsis:
            size *= prod(lengths[: len(lengths) - used])
            del lengths[: len(lengths) - used]
        elif isinstance(each, slice):
            size *= lengths.pop(0) if lengths else 1
            used -= 1
        elif each is not None:
            shape = _shape_of(each)
            taken = _dimensions(each)
            arrays.append(shape if taken == 1 else (prod(shape),))
            del lengths[:taken]
            used -= taken
    return size * prod(lengths) * prod(np.broadcast_shapes(*arrays))


def _dimensions(each: Any) -> int:
    """Return how many dimensions a part of an index takes."""
    if each is None or each is Ellipsis:
        return 0
    boolean = getattr(each, "dtype", None) == np.bool_ and not isinstance(each, np.generic)
    return max(len(_shape_of(each)), 1) if boolean else 1


def _of_shape(place: int, name: str = "shape") -> Callable[[Statement, Sequence[Shape]], int]:
    def size(statement: Statement, shapes: Sequence[Shape]) -> int:
        shape = statement.args[place] if len(statement.args) > place else statement.kwargs.get(name, ())
        return prod(shape if isinstance(shape, (tuple, list)) else (shape,))

    return size


def _times(statement: Statement, shapes: Sequence[Shape]) -> int:
    """Return the elements of repetitions."""
    given = [*statement.args[1:2], *statement.kwargs.values()]
    numbers = [np.max(each, initial=1) for each in given if type(each) is not Value]
    reps = statement.args[1] if len(statement.args) > 1 and isinstance(statement.args[1], (tuple, list)) else numbers
    return prod(shapes[0]) * int(prod(max(int(each), 1) for each in reps))


def _pad(statement: Statement, shapes: Sequence[Shape]) -> int:
    width = statement.args[1] if len(statement.args) > 1 else statement.kwargs["pad_width"]
    widths = np.broadcast_to(width, (len(shapes[0]), 2))
    return prod(int(length + sum(pair)) for length, pair in zip(shapes[0], widths))


_RULES: dict[str, Callable[[Statement, Sequence[Shape]], int]] = {
    "matmul": _matmul,
    "dot": _dot,
    "ndarray.dot": _dot,
    "inner": _inner,
    "tensordot": _tensordot,
    "einsum": _einsum,
    "take": _take,
    "ndarray.take": _take,
    "getitem": _getitem,
    "add_at": _getitem,
    "broadcast_to": _of_shape(1),
    "repeat": _times,
    "ndarray.repeat": _times,
    "tile": _times,
    "pad": _pad,
}


def check_kept(statements: Sequence[Statement], memory: int) -> None:
    """Raise if the results that calls make anew in each replay are too many.

    Args:
        statements: the program.
        memory: bytes that they may take together.

    Raises:
        ValueError: they take more.
    """
    made = {
        value.number: value.nbytes
        for each in statements
        if each.kind.name == "CALL" and not each.into
        for value in values_in(each.result)
    }
    if sum(made.values()) > memory:
        raise ValueError(f"its results take {sum(made.values()):,} bytes; pass load_plan(..., memory=) if you trust it")


def refuse_shape(array: Any, shape: Shape) -> None:
    """Raise: a result has another shape than its plan says.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"a result has the shape {array.shape}, and the plan says {shape}")
