"""Reasons for the errors that NumPy raises, found from the arguments of the failed operation.

Shapes and dtypes are not checked before NumPy runs, because that would make every call slower. NumPy raises plain
``TypeError`` and ``ValueError`` here, which only their texts tell from other errors; the texts are used for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]


def reason(error: Exception, args: Sequence[Any]) -> str:
    """Return why an operation failed: from its arguments if NumPy raised the error, else the error's text.

    Args:
        error: raised by NumPy, Python or an operation.
        args: the arguments that the operation was called with.
    """
    if isinstance(error, np.exceptions.AxisError):
        return f"dim {error.axis} is out of range: the tensor has {error.ndim} dimensions"
    text = str(error)
    shapes = [tuple(value.shape) for value in args if isinstance(getattr(value, "shape", None), tuple)]
    for phrase, explain in _REASONS:
        if phrase in text:
            return explain(shapes) if callable(explain) else explain
    return text


def _not_broadcastable(shapes: list[Shape]) -> str:
    different = list(dict.fromkeys(shapes))
    if len(different) < 2:  # the operation failed on arrays that it computed from its arguments
        return "the shapes of its arrays cannot be broadcast together"
    text = f"the shapes {' and '.join(map(str, different))} cannot be broadcast together"
    for dim in range(1, max(map(len, different)) + 1):
        lengths = dict.fromkeys(shape[-dim] for shape in different if len(shape) >= dim and shape[-dim] != 1)
        if len(lengths) > 1:
            return f"{text}: in dimension {-dim} their lengths are {' and '.join(map(str, lengths))}, and none is 1"
    return text


def _too_large(shapes: list[Shape]) -> str:
    try:
        result = np.broadcast_shapes(*shapes)
    except ValueError:
        return _not_broadcastable(shapes)
    return f"a result of shape {result} does not fit into a tensor of shape {shapes[0] if shapes else ()}"


_NO_LOOP = "there is no such function of these dtypes; convert one of them, as by float() or abs()"

_REASONS: tuple[tuple[str, str | Callable[[list[Shape]], str]], ...] = (
    ("non-broadcastable output operand", _too_large),
    ("could not be broadcast together with shapes", _not_broadcastable),
    ("cannot be broadcast to a single shape", _not_broadcastable),
    ("boolean subtract", "booleans cannot be subtracted; use logical_xor(), or convert them, as by float()"),
    ("boolean negative", "booleans have no negative; use logical_not(), or convert them, as by float()"),
    ("not supported for the input types", _NO_LOOP),
    ("did not contain a loop with signature", _NO_LOOP),
    ("could not be promoted by", _NO_LOOP),
    ("Cannot cast ufunc", "the result's dtype is of a higher category than that of the tensor it is for"),
    (
        "is read-only",
        "this memory cannot be written to: several elements of an expanded or unfolded tensor share it, or it came "
        "read-only from elsewhere; clone() the tensor first",
    ),
    ("Integers to negative integer powers", "whole numbers have no negative powers; convert them by float()"),
)
