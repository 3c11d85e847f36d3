"""Looks: the places where Python reads elements of a tensor as numbers. A plan with looks is for the values that were seen."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from ..core.extend import Array, Tensor
from .errors import Unrecordable
from .trees import form

_MOST = 64  # elements of a list that is a condition of a plan

LOOK = "a look"  # name of the event
Reader = Callable[[Array], Any]
READERS: dict[CodeType, Reader] = {
    Tensor.item.__code__: lambda array: array.item(),
    Tensor.tolist.__code__: lambda array: array.tolist(),
    Tensor.__bool__.__code__: bool,
    Tensor.__int__.__code__: lambda array: int(array.item()),
    Tensor.__index__.__code__: lambda array: int(array.item()),
    Tensor.__float__.__code__: lambda array: float(array.item()),
}


class Look(NamedTuple):
    """A look at a value.

    Attributes:
        name: of the method that reads it.
        line: of the program.
        value: what it returned.
        seen: the same in a form to compare.
        at: the line of the compiled function.
    """

    name: str
    line: str
    value: Any
    seen: Any
    at: int | None = None

    def __str__(self) -> str:
        return f"{self.name}() of {self.line} is {self.value}"


def number_of(given: Any) -> Any:
    """Return a number that an operation has returned."""
    return given


def look_at(reader: Reader, array: Array) -> Any:
    """Return what Python sees of an array, in a form to compare."""
    value = reader(array)
    kind = type(value)
    return (kind, value) if kind is bool or kind is int else form(value, _refuse)


def look(reader: Reader, name: str, line: str, array: Array, value: Any) -> Look:
    """Return the look of a recorded call.

    Args:
        reader: reads the value again.
        name: of the method that has read it.
        line: of the program.
        array: the elements.
        value: what was read.

    Raises:
        Unrecordable: it cannot be a condition.
    """
    if array.size > _MOST:
        raise Unrecordable(f"{name}() reads more than {_MOST} elements; return the tensor, and read it outside")
    seen = form(value, _refuse)
    if look_at(reader, array) != seen:
        raise Unrecordable(f"{name}() reads elements in an unusual way")
    return Look(name, line, value, seen)


def is_rounded(seen: Any) -> bool:
    """Return whether there are floating-point numbers in what was seen: these are often others in each call."""
    kind, value = seen
    return kind in (float, complex) or (isinstance(value, tuple) and any(map(is_rounded, value)))


def varies(name: str, line: str) -> str:
    """Return the reason for eager calls if a look sees other values from call to call: its name, and its line."""
    return (
        f"{name}() reads elements, which are others from call to call; return the tensor and read it outside, or compare "
        f"tensors and look at the truth of that ({line})"
    )


def _refuse(tensor: Tensor) -> Any:
    raise Unrecordable("a tensor is no number")
