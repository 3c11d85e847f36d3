"""``Layouts``: backward passes of replays for gradients in another layout than the recorded one.

NumPy lays a result out as its operands are, and sums elements in the order of memory. So the order of a sum, and with it the
last bit, can depend on the layout of the gradient from outside. A pass with planned memory is right for one layout; for
others, the recorded calls run one after the other, each with new memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, Protocol

import numpy as np

from ..core.extend import Array
from .recorded import Recorded
from .tracer import condition_of
from .values import Kind, Statement, Value

# Functions whose results have the same layout whatever that of their operands is.
_ORDERED = (np.matmul, np.dot, np.add.reduce, np.sum, np.einsum, np.tensordot, np.concatenate)


class Lines(Protocol):
    """The part of a ``Source`` that is needed to write a pass.

    Attributes:
        constants: by name.
        recorded: the program as it was recorded.
        passes: the statements of each backward pass, with those that make results of the forward pass again.
    """

    constants: dict[str, Any]
    recorded: Recorded
    passes: Sequence[Sequence[Statement]]

    def name(self, value: Value) -> str:
        """Return the name of a value."""

    def plain_lines(self, statement: Statement) -> list[str]:
        """Return the lines of a statement, with new memory for its result."""

    def gradients_line(self, place: int) -> str:
        """Return what a backward pass returns."""


def fits(gradient: Array, value: Value, ordered: bool) -> bool:
    """Return whether the pass with planned memory is right for a gradient.

    Args:
        gradient: from outside.
        value: the recorded one.
        ordered: whether all element-wise calls of the pass are on arrays in order.
    """
    if gradient.strides == value.strides or gradient.ndim < 2:
        return True
    pairs = [
        (found, wanted) for found, wanted, length in zip(gradient.strides, value.strides, gradient.shape) if length > 1
    ]
    if all(found == wanted for found, wanted in pairs):
        return True
    # An expanded gradient leaves the layout to the other operands.
    return ordered and all(found in (0, wanted) for found, wanted in pairs)


def is_ordered(statements: Sequence[Statement]) -> bool:
    """Return whether all calls whose results' layout depends on their operands' are on arrays in order."""
    return all(
        _in_order(value)
        for each in statements
        if each.kind is not Kind.VIEW and each.function not in _ORDERED
        for value in [*each.values(), *([] if each.result is None else [each.result])]
    )


def _in_order(value: Value) -> bool:
    if value.shape is None:
        return True
    step = value.dtype.itemsize
    for length, stride in zip(reversed(value.shape), reversed(value.strides)):
        if length > 1 and stride != step:
            return False
        step *= length
    return True


class Layouts:
    """Backward passes of a program for gradients of any layout.

    Args:
        source: the program.
    """

    def __init__(self, source: Lines) -> None:
        self._source = source
        self._places = {each.mask: place for place, each in enumerate(source.recorded.backwards)}
        self._ordered: dict[int, bool] = {}
        self._codes: dict[int, CodeType] = {}
        self._lock = threading.Lock()  # held while a pass is written, which names constants

    def choose(
        self, mask: tuple[bool, ...], planned: Callable[..., Any], gradients: Sequence[Array]
    ) -> Callable[..., Any]:
        """Return the pass for some gradients: the planned one, if it is right for them.

        Args:
            mask: of the pass.
            planned: the pass in planned memory.
            gradients: what it will get.
        """
        place = self._places[mask]
        given = self._source.recorded.backwards[place].given
        if all(gradient.ndim < 2 or gradient.strides == value.strides for gradient, value in zip(gradients, given)):
            return planned
        if place not in self._ordered:
            self._ordered[place] = all(map(_in_order, given)) and is_ordered(self._source.passes[place])
        if all(fits(gradient, value, self._ordered[place]) for gradient, value in zip(gradients, given)):
            return planned
        with self._lock:
            if place not in self._codes:
                self._codes[place] = self._code(place)
        return self._bound(self._codes[place], planned)

    def _code(self, place: int) -> CodeType:
        source = self._source
        given = source.recorded.backwards[place].given
        lines = [f"def backward({', '.join(map(source.name, given))}):"]
        for statement in self._source.passes[place]:
            if statement.function is not condition_of:
                lines += [f"    {line}" for line in source.plain_lines(statement)]
        lines.append(f"    return {source.gradients_line(place)}")
        module = compile("\n".join(lines), "<backward pass>", "exec")
        return next(each for each in module.co_consts if isinstance(each, CodeType))

    def _bound(self, code: CodeType, planned: Any) -> FunctionType:
        """Return the pass with the values of the replay that ``planned`` belongs to."""
        cells = zip(planned.__code__.co_freevars, planned.__closure__ or ())
        held = {name: cell.cell_contents for name, cell in cells}
        return FunctionType(code, {**planned.__globals__, **self._source.constants, **held})
