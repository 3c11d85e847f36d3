"""Values and statements: the form of a recorded program.

A statement calls one function on values and constants. Values are named by their numbers. Each value knows which storages
its memory is part of, so that a later stage knows how long memory is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np

from ..core.extend import Array

Storage = int


class Value:
    """An array of the program, or something else that a statement made.

    Attributes:
        number: names it.
        storages: the memory that it is part of; several, where it is not known which.
        shape, dtype, strides: of the array; ``None`` for what is none.
        nbytes: size of the elements.
        writeable: whether NumPy lets elements be written; not to what ``broadcast_to`` returns, and to views of that.
    """

    __slots__ = ("dtype", "nbytes", "number", "shape", "storages", "strides", "writeable")

    def __init__(self, number: int, storages: frozenset[Storage], example: Array | None = None) -> None:
        self.number, self.storages = number, storages
        self.shape: Any = None
        self.dtype: Any = None
        self.strides: Any = None
        self.nbytes, self.writeable = 0, True
        if example is not None:
            self.shape, self.dtype, self.strides = example.shape, example.dtype, example.strides
            self.nbytes, self.writeable = example.nbytes, example.flags.writeable


class Kind(Enum):
    """Kind of a statement.

    Attributes:
        CALL: its result is new memory, or another value's.
        VIEW: its result is a view of its one argument, whatever that holds.
        WRITE: it writes to its target, and has no result.
        EFFECT: it changes objects outside of the program, or hands them values.
    """

    CALL = auto()
    VIEW = auto()
    WRITE = auto()
    EFFECT = auto()


@dataclass(slots=True, eq=False)
class Wrapped:
    """An argument: a value as a tensor.

    Attributes:
        value: the array.
        requires_grad: of the tensor.
    """

    value: Value
    requires_grad: bool


@dataclass(slots=True, eq=False)
class Outer:
    """An argument: a tensor that exists outside of the program, itself.

    Attributes:
        place: index into the tensors of the call, or into those that the program found, if ``found``.
        found: whether it is not an argument of the call.
    """

    place: int
    found: bool


@dataclass(slots=True, eq=False)
class Statement:
    """One call of the program.

    Attributes:
        kind: see ``Kind``.
        function: what is called.
        args: arguments: values, constants, and tuples, lists and dicts of them.
        kwargs: named arguments.
        result: the value of the result; ``None`` if it is not used.
        into: whether ``out=`` may name the memory of the result.
        target: the value that is written to.
        uses: storages that it needs beside those of its arguments.
        changes: whether it changes something outside, so that the program cannot be begun again.
        escapes: whether others keep its arguments, so that no memory of the program's can hold them.
        checked: whether the shape of the result may depend on elements: a replay ends with an error if it is another.
        moves: whether it may run later, but before another effect: it hands over a first gradient, and writes to no array.
        draws: whether all that it changes outside is the state of a generator of random numbers.
        leaves: whether it sends a message to another worker, which is to leave as early as possible.
    """

    kind: Kind
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    result: Value | None = None
    into: bool = False
    target: Value | None = None
    uses: frozenset[Storage] = frozenset()
    escapes: bool = False
    changes: bool = False
    checked: bool = False
    moves: bool = False
    draws: bool = False
    leaves: bool = False
    _values: Sequence[Value] | None = field(default=None, init=False, repr=False)

    def values(self) -> Sequence[Value]:
        """Return the values among the arguments, which stay the same."""
        if self._values is None:
            found = values_in((self.args, self.kwargs))
            self._values = found if self.target is None else [*found, self.target]
        return self._values

    def made(self) -> list[Value]:
        """Return the results that can be written into memory that stays."""
        return [self.result] if self.into and self.result is not None else []

    def overwritable(self, value: Value) -> Iterator[Value]:
        """Return the values that can lie in the same memory as a result: operands of an element-wise function.

        Args:
            value: the result.
        """
        function = self.function
        if (isinstance(function, np.ufunc) and function.signature is None) or function is np.clip:
            yield from self.values()

    def storages(self) -> frozenset[Storage]:
        """Return the storages that must exist while it runs."""
        found = set(self.uses)
        for value in self.values():
            found |= value.storages
        if self.result is not None:
            found |= self.result.storages
        return frozenset(found)


@dataclass(slots=True, eq=False)
class Backward:
    """A part of the program that is a backward pass of its results, for those of them that get a gradient.

    Attributes:
        mask: for each result that requires grad, whether it gets a gradient.
        start: the first statement.
        given: the values of these gradients.
        inputs: tensors whose gradients it computes.
        gradients: these gradients, in the same order.
        sums: those of the tensors to which several gradients lead, which it adds up.
    """

    mask: tuple[bool, ...]
    start: int
    given: list[Value]
    inputs: list[Any]
    gradients: list[Any]
    sums: list[Any] = field(default_factory=list)


def values_in(tree: Any) -> list[Value]:
    """Return the values in arguments: in tuples, lists, dicts and slices, too."""
    found: list[Value] = []
    _collect(tree, found)
    return found


def _collect(tree: Any, found: list[Value]) -> None:
    kind = type(tree)
    if kind is Value:
        found.append(tree)
    elif kind is Wrapped:
        found.append(tree.value)
    elif isinstance(tree, (tuple, list)):
        for each in tree:
            _collect(each, found)
    elif kind is dict:
        for each in tree.values():
            _collect(each, found)
    elif kind is slice:
        _collect((tree.start, tree.stop, tree.step), found)


def outers_in(tree: Any) -> Iterator[Outer]:
    """Return the tensors from outside in arguments: in tuples, lists and dicts, too."""
    if type(tree) is Outer:
        yield tree
    elif isinstance(tree, (tuple, list)):
        for each in tree:
            yield from outers_in(each)
    elif isinstance(tree, dict):
        yield from outers_in(list(tree.values()))


def mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    """Return ``tree`` with ``function`` applied to what is no tuple, list, dict or slice.

    Args:
        tree: the arguments of a call.
        function: gets each part.
    """
    kind = type(tree)
    if kind is tuple:
        return tuple([mapped(each, function) for each in tree])
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind(*[mapped(each, function) for each in tree])
    if isinstance(tree, (tuple, list)):
        return kind([mapped(each, function) for each in tree])
    if kind is dict:
        return {name: mapped(each, function) for name, each in tree.items()}
    if kind is slice:
        return slice(*[mapped(each, function) for each in (tree.start, tree.stop, tree.step)])
    return function(tree)
