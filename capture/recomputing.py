"""``recomputed``: large results that are cheap to make are made again before a late use, instead of being kept until then.

A backward pass needs what the forward pass made first at its very end. The output of batch_norm and relu is a few element-wise
calls on memory that is kept anyway: on the convolution's output, which the gradient of batch_norm needs. The same calls on the
same arrays give the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .fusion import EXACT, ROUNDED
from .into import cast, copied, in_order
from .limits import LIMITS
from .values import Kind, Statement, Storage, Value, Wrapped, mapped

_CHEAP: frozenset[Callable[..., Any]] = EXACT | ROUNDED | {np.empty, np.clip, cast, copied, in_order, operator.setitem}
_CALLS = 6  # passes over the result that may be made again


@dataclass(slots=True, eq=False)
class _Again:
    """A result that is made again.

    Attributes:
        storage: its memory.
        at: the statement before which it is made.
        recipe: the statements that make it, by their indices in order.
    """

    storage: Storage
    at: int
    recipe: list[int]


def recomputed(
    statements: Sequence[Statement], cuts: Sequence[int], kept: set[Storage], live: Sequence[Value] = ()
) -> tuple[list[Statement], list[int]]:
    """Return the program with results that are made again, and where its parts begin now.

    Args:
        statements: the program.
        cuts: where its parts begin, and where the last ends: the forward half, and backward passes.
        kept: storages that others may keep, or that the program returns.
        live: values that were made before.
    """
    found: dict[int, list[_Again]] = {}
    for each in _Search(statements, cuts, kept).all():
        found.setdefault(each.at, []).append(each)
    writer = _Writer(statements, live)
    done: list[Statement] = []
    begins = [0]
    for start, stop in pairwise(cuts):
        for index in range(start, stop):
            for each in found.get(index, ()):
                done += writer.again(each)
            done.append(writer.renamed(statements[index]))
        begins.append(len(done))
    return done, begins


class _Search:
    """Finds the results that are worth it.

    Args:
        statements, cuts, kept: the arguments of ``recomputed``.
    """

    def __init__(self, statements: Sequence[Statement], cuts: Sequence[int], kept: set[Storage]) -> None:
        self._statements, self._cuts, self._kept = statements, cuts, kept
        self._uses: dict[Storage, list[int]] = {}
        self._writes: dict[Storage, list[int]] = {}
        self._sizes: dict[Storage, int] = {}
        self._mixed: set[Storage] = set()  # used by what is no plain call, or together with other memory
        self._pinned: set[Storage] = set()  # those that others are made of
        self._dropped: set[Storage] = set()
        for index, statement in enumerate(statements):
            self._note(index, statement)
        self._made = np.cumsum([0, *map(self._large, statements)])

    def _note(self, index: int, statement: Statement) -> None:
        values = [*statement.values(), *([] if statement.result is None else [statement.result])]
        plain = statement.kind is not Kind.EFFECT and not statement.uses
        for storage in statement.storages():
            self._uses.setdefault(storage, []).append(index)
        for value in values:
            if not plain or len(value.storages) != 1 or value.shape is None:
                self._mixed |= value.storages
        self._mixed |= statement.uses
        made = statement.result if statement.kind is Kind.CALL else None
        if made is not None and made.storages != {made.number}:
            self._mixed |= made.storages  # the memory of an argument
        elif made is not None:
            self._writes[made.number], self._sizes[made.number] = [index], made.nbytes
        elif statement.target is not None:
            for storage in statement.target.storages:
                self._writes.setdefault(storage, []).append(index)

    def _large(self, statement: Statement) -> int:
        size = statement.result.nbytes if statement.into and statement.result is not None else 0
        return size if size >= LIMITS.large else 0

    def all(self) -> Iterator[_Again]:
        """Yield them in the order of the program."""
        for storage, size in self._sizes.items():
            if size >= LIMITS.large and storage not in self._pinned and self._ours(storage):
                found = self._again(storage, size)
                if found is not None:
                    yield found

    def _ours(self, storage: Storage) -> bool:
        return storage in self._sizes and storage not in self._kept and storage not in self._mixed

    def _again(self, storage: Storage, size: int) -> _Again | None:
        uses = self._uses[storage]
        if len(uses) < 2:
            return None
        start, stop = max(pairwise(uses), key=lambda pair: int(self._made[pair[1]] - self._made[pair[0] + 1]))
        if self._made[stop] - self._made[start + 1] < LIMITS.again * size or self._writes[storage][-1] > start:
            return None
        if self._part(stop) != self._part(uses[-1]):  # passes that need not run one after the other
            return None
        recipe, operands = self._recipe(storage, start, stop, size)
        if not recipe:
            return None
        for each in operands:
            self._uses[each] = sorted({*self._uses[each], stop})
        self._pinned |= operands
        self._dropped.add(storage)
        return _Again(storage, stop, recipe)

    def _part(self, index: int) -> int:
        return sum(cut <= index for cut in self._cuts)

    def _recipe(self, storage: Storage, start: int, stop: int, size: int) -> tuple[list[int], set[Storage]]:
        """Return the statements that make a result, and what they use of other memory; nothing if that is not possible."""
        recipe, operands, todo, seen, cost = set[int](), set[Storage](), [storage], {storage}, 0
        while todo:
            wanted = todo.pop()
            indices = self._writes[wanted]
            if indices[-1] > start or any(self._statements[index].function not in _CHEAP for index in indices):
                return [], set()
            for index in indices:
                recipe.add(index)
                statement = self._statements[index]
                written = statement.target if statement.result is None else statement.result
                assert written is not None
                cost += written.nbytes * (statement.function is not np.empty)
                for each in statement.storages() - seen:
                    seen.add(each)
                    if not self._ours(each):
                        return [], set()
                    if self._available(each, index, stop):
                        operands.add(each)
                    else:
                        todo.append(each)
            if cost > _CALLS * size:
                return [], set()
        if any(
            self._writes[each][-1] >= index
            for index in recipe
            for each in operands & self._statements[index].storages()
        ):
            return [], set()
        made = seen - operands
        views = (index for each in made for index in self._uses[each] if index <= start)
        recipe |= {index for index in views if self._statements[index].kind is Kind.VIEW}
        return sorted(recipe), operands

    def _available(self, storage: Storage, since: int, until: int) -> bool:
        """Return whether an operand is kept until a statement anyway, or is small, and does not change before."""
        if storage in self._dropped or any(since < index for index in self._writes[storage]):
            return False
        return self._sizes[storage] <= LIMITS.operand or self._uses[storage][-1] >= until


class _Writer:
    """Writes the statements again, with other memory.

    Args:
        statements: the program.
        live: values that were made before; their numbers are not used again.
    """

    def __init__(self, statements: Sequence[Statement], live: Sequence[Value]) -> None:
        self._statements = statements
        used = (value for each in statements for value in (*each.values(), each.result) if value is not None)
        values = (*used, *live)
        self._last = max((max(value.number, *value.storages, 0) for value in values), default=0)
        self._values: dict[int, Value] = {}  # by the numbers of values, those in their places from now on
        self._storages: dict[Storage, Storage] = {}

    def again(self, result: _Again) -> Iterator[Statement]:
        """Yield the statements that make a result again; from now on it has the place of the old one."""
        values, storages = self._values, self._storages
        self._values, self._storages = dict(values), dict(storages)
        for index in result.recipe:
            statement = self._statements[index]
            if statement.result is not None:
                self._values[statement.result.number] = self._new(statement.result)
            yield self.renamed(statement)
        storage = self._storages[result.storage]
        found = {number: value for number, value in self._values.items() if value.storages == {storage}}
        self._values, self._storages = values | found, storages | {result.storage: storage}

    def _new(self, value: Value) -> Value:
        (storage,) = value.storages
        if storage not in self._storages or storage == value.number:
            self._last += 1
            self._storages[storage] = self._last
        self._last += 1
        return _copied(value, self._last, self._storages[storage])

    def renamed(self, statement: Statement) -> Statement:
        """Return a statement on the values that are in the places of others now."""
        if not self._values:
            return statement
        result = None if statement.result is None else self._value(statement.result)
        target = None if statement.target is None else self._value(statement.target)
        args, kwargs = mapped((statement.args, statement.kwargs), self._operand)
        return replace(statement, args=args, kwargs=kwargs, result=result, target=target)

    def _operand(self, each: Any) -> Any:
        if type(each) is Wrapped:
            return Wrapped(self._value(each.value), each.requires_grad)
        return self._value(each) if type(each) is Value else each

    def _value(self, value: Value) -> Value:
        found = self._values.get(value.number)
        if found is None and len(value.storages) == 1 and (storage := self._storages.get(*value.storages)) is not None:
            found = self._values[value.number] = _copied(value, value.number, storage)  # a view that is made later
        return value if found is None else found


def _copied(value: Value, number: int, storage: Storage) -> Value:
    copy = Value(number, frozenset([storage]))
    copy.shape, copy.dtype, copy.strides, copy.nbytes = value.shape, value.dtype, value.strides, value.nbytes
    copy.writeable = value.writeable
    return copy
