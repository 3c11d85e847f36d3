"""``fused``: chains of element-wise calls, as one statement that runs them block by block.

A block of each array stays in the processor's cache from one call to the next. What only the chain uses has memory for one
block. Each element is computed by the same calls as before, so the bits are the same. Reductions are never split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import gcd, prod
from typing import Any

import numpy as np

from .blocks import Blocks
from .into import cast
from .limits import LIMITS
from .values import Kind, Statement, Storage, Value, values_in


def _ufuncs(names: str) -> frozenset[np.ufunc]:
    return frozenset([getattr(np, name) for name in names.split()])


# Each result depends on its operands only, and is rounded correctly.
EXACT = _ufuncs(
    "add subtract multiply true_divide negative positive absolute fabs square sqrt reciprocal maximum minimum "
    "fmax fmin sign floor ceil rint trunc copysign signbit isnan isinf isfinite invert less less_equal greater "
    "greater_equal equal not_equal logical_and logical_or logical_not logical_xor bitwise_and bitwise_or "
    "bitwise_xor "
)
_ARITY: dict[Any, int] = {np.clip: 3, cast: 2}  # functions that are no ufuncs, and just as exact
# Rounded in a way that may depend on the loop that NumPy takes: the operands must be whole arrays in order, or numbers.
ROUNDED = _ufuncs(
    "exp exp2 expm1 log log2 log10 log1p tanh sinh cosh sin cos tan arctan arcsin arccos arctan2 power logaddexp cbrt "
)


def fused(
    statements: Sequence[Statement], cuts: Sequence[int], kept: set[Storage]
) -> tuple[list[Statement], list[int]]:
    """Return the program with its chains as single statements, and where its parts begin now.

    Args:
        statements: the program.
        cuts: where its parts begin, and where the last ends: the forward half, and backward passes.
        kept: storages that others may keep, or that the program returns.
    """
    users: dict[Storage, int] = {}
    for statement in statements:
        for storage in statement.storages():
            users[storage] = users.get(storage, 0) + 1

    def inside(parts: Sequence[Statement], storage: Storage) -> bool:
        return storage not in kept and users[storage] == sum(storage in part.storages() for part in parts)

    done: list[Statement] = []
    ends = [0]
    for start, stop in pairwise(cuts):
        done += _fused(statements[start:stop], inside)
        ends.append(len(done))
    return done, ends


def _fused(statements: Sequence[Statement], inside: Callable[[Sequence[Statement], Storage], bool]) -> list[Statement]:
    done: list[Statement] = []
    chain: Chain | None = None
    for statement in statements:
        if chain is not None and chain.takes(statement):
            chain.add(statement)
        elif chain is not None and chain.independent(statement):
            done.append(statement)  # before the chain
        else:
            if chain is not None:
                done += chain.statements(inside)
            chain = Chain(statement) if _elementwise(statement) else None
            if chain is None:
                done.append(statement)
    return done if chain is None else [*done, *chain.statements(inside)]


class Chain:
    """Element-wise calls with results of one shape.

    Args:
        first: the first of them.
    """

    def __init__(self, first: Statement) -> None:
        self._shape = _written(first).shape
        self._parts: list[Statement] = []
        self._roots: dict[int, int] = {}  # the numbers of the values that have the memory of views
        self._values: dict[Storage, set[int]] = {}  # the values that are read or written, by storage, without views
        self._changed: set[Storage] = set()
        self.add(first)

    def add(self, statement: Statement) -> None:
        """Append a call."""
        self._parts.append(statement)
        if statement.kind is Kind.VIEW:
            (base,) = statement.values()
            self._roots[_written(statement).number] = self._root(base)
            return
        self._changed |= _written(statement).storages
        for value in _all_values(statement):
            for storage in value.storages:
                self._values.setdefault(storage, set()).add(self._root(value))

    def _root(self, value: Value) -> int:
        return self._roots.get(value.number, value.number)

    def takes(self, statement: Statement) -> bool:
        """Return whether a call can be appended."""
        if _same_elements(statement):
            (base,) = statement.values()
            written = all(self._values.get(storage) == {self._root(base)} for storage in base.storages)
            return written and base.shape == self._shape and not self._changed.isdisjoint(base.storages)
        if not _elementwise(statement) or _written(statement).shape != self._shape:
            return False
        changed = self._changed | _written(statement).storages
        for value in _all_values(statement):
            for storage in value.storages & changed:  # elements of one value only, so that each block is its own
                if self._values.get(storage, set()) - {self._root(value)}:
                    return False
        return True

    def independent(self, statement: Statement) -> bool:
        """Return whether a later statement can run before the chain."""
        small = statement.kind is Kind.VIEW or statement.function is np.empty
        small = small or (statement.result is not None and statement.result.nbytes < LIMITS.chain)
        pure = statement.kind in (Kind.CALL, Kind.VIEW)
        return pure and small and self._changed.isdisjoint(statement.storages())

    def statements(self, inside: Callable[[Sequence[Statement], Storage], bool]) -> list[Statement]:
        """Return one statement of blocks, or the calls themselves where blocks are of no use.

        Args:
            inside: returns whether a storage is used by some calls only.
        """
        calls = [part for part in self._parts if part.kind is not Kind.VIEW]
        largest = max(_written(part).nbytes for part in calls)
        if len(calls) < 2 or largest < LIMITS.chain:
            return list(self._parts)
        flat = not any(_by_rows(each, self._shape) for part in calls for each in _operands(part))
        length = prod(self._shape) if flat else self._shape[0]
        step = self._step(flat, max(_written(part).dtype.itemsize for part in calls))
        if step >= length or step * (largest // length) > 4 * LIMITS.block:
            return list(self._parts)
        made = [part.result for part in calls if part.result is not None]
        inner = [value for value in made if all(inside(self._parts, storage) for storage in value.storages)]
        hidden = {storage for value in inner for storage in value.storages}
        views = [part for part in self._parts if part.kind is Kind.VIEW and hidden.isdisjoint(part.storages())]
        return [Blocks.of(self._parts, inner, flat, length, step), *views]

    def _step(self, flat: bool, itemsize: int) -> int:
        """Return the length of a block: elements, or rows."""
        row = 1 if flat else prod(self._shape[1:])
        unit = LIMITS.group // gcd(LIMITS.group, row)
        return max(LIMITS.block // (row * itemsize) // unit, 1) * unit


def _elementwise(statement: Statement) -> bool:
    function: Any = statement.function
    operands = _operands(statement)
    known = function in EXACT or function in _ARITY or (function in ROUNDED and LIMITS.rounded)
    if not known or statement.kwargs.keys() - {"out"}:
        return False
    if not (statement.kind is Kind.CALL and statement.into and statement.result) and statement.kind is not Kind.WRITE:
        return False
    written = _written(statement)
    if not written.shape or not written.nbytes or not _in_order(written):
        return False
    if len(statement.args) != (_ARITY.get(function) or function.nin):
        return False
    if function not in ROUNDED:
        return all(_divides(each, written.shape) for each in operands)
    return all(np.size(each) == 1 if type(each) is not Value else _rounds_alike(each, written) for each in operands)


def _same_elements(statement: Statement) -> bool:
    """Return whether a statement is a view of an array as another dtype of the same size."""
    if statement.kind is not Kind.VIEW or statement.function is not np.ndarray.view or statement.kwargs:
        return False
    value, base = statement.result, statement.args[0]
    assert value is not None
    return value.shape == base.shape and value.dtype.itemsize == base.dtype.itemsize and _in_order(base)


def _operands(statement: Statement) -> tuple[Any, ...]:
    return statement.args[:1] if statement.function is cast else statement.args


def _rounds_alike(operand: Value, written: Value) -> bool:
    single = prod(operand.shape) == 1
    return operand.dtype == written.dtype and (single or (operand.shape == written.shape and _in_order(operand)))


def _divides(operand: Any, shape: tuple[int, ...]) -> bool:
    """Return whether blocks of the result need blocks of an operand, or all of it."""
    if type(operand) is not Value:
        return isinstance(operand, (bool, int, float, np.generic, type(None))) or (
            isinstance(operand, np.ndarray) and (operand.ndim < len(shape) or operand.size == 1)
        )
    return operand.dtype is not None and operand.dtype.kind in "fiub"


def _by_rows(operand: Any, shape: tuple[int, ...]) -> bool:
    """Return whether an operand is neither the whole array in order nor one number."""
    if type(operand) is Value:
        return (prod(operand.shape) != 1 or len(operand.shape) > 1) and (
            operand.shape != shape or not _in_order(operand)
        )
    return isinstance(operand, np.ndarray) and (operand.size != 1 or operand.ndim > 1)


def _in_order(value: Value) -> bool:
    expected, step = [], value.dtype.itemsize
    for length in reversed(value.shape):
        expected.append(step)
        step *= length
    return all(
        length == 1 or found == wanted for length, found, wanted in zip(value.shape, value.strides, reversed(expected))
    )


def _written(statement: Statement) -> Value:
    value = statement.result if statement.target is None else statement.target
    assert value is not None
    return value


def _all_values(statement: Statement) -> list[Value]:
    return [*values_in(statement.args), _written(statement)]
