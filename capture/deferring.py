"""``deferred``: gradients that are much larger than what they are made of are made at the end of a backward pass.

The last layers of a network often have the most parameters and the smallest activations, and a backward pass reaches them
first. Their gradients would lie in memory beside all activations of the other layers, which are dropped one after the other
until the pass ends. The same calls on the same arrays give the same bits later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..core.extend import accumulate_grad
from .limits import LIMITS
from .values import Kind, Statement, Storage, Value


@dataclass(slots=True, eq=False)
class _Later:
    """A gradient that is made later.

    Attributes:
        indices: the statements that make it and hand it over, in order.
        kept: bytes of the operands that are kept for it.
        passing: bytes of what else is made for it.
    """

    indices: list[int]
    kept: int
    passing: int


def deferred(statements: Sequence[Statement], cuts: Sequence[int], kept: set[Storage]) -> list[Statement]:
    """Return the program with such gradients at the end of their passes. Its parts begin where they did.

    Args:
        statements: the program.
        cuts: where its parts begin, and where the last ends: the forward half, and backward passes.
        kept: storages that others may keep, or that the program returns.
    """
    search = _Search(statements, kept)
    done: list[Statement] = []
    for start, stop in _passes(statements, cuts):
        # What takes most memory besides is first, while there are few gradients.
        found = sorted(search.all(start, stop), key=lambda each: -each.kept - each.passing)
        moved = {index for each in found for index in each.indices}
        done += [statements[index] for index in range(start, stop) if index not in moved]
        done += [statements[index] for each in found for index in each.indices]
    return done


def _passes(statements: Sequence[Statement], cuts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the parts between effects other than gradients that arrive, which stay where they are, and these."""
    for start, stop in pairwise(cuts):
        begin = start
        for index in range(start, stop):
            if statements[index].kind is Kind.EFFECT and statements[index].function is not accumulate_grad:
                yield begin, index
                yield index, index + 1
                begin = index + 1
        yield begin, stop


class _Search:
    """Finds the gradients that are worth it.

    Args:
        statements, kept: the arguments of ``deferred``.
    """

    def __init__(self, statements: Sequence[Statement], kept: set[Storage]) -> None:
        self._statements, self._kept = statements, kept
        self._uses: dict[Storage, list[int]] = {}
        self._writes: dict[Storage, int] = {}  # the last
        self._sizes: dict[Storage, int] = {}  # of memory that the program makes
        for index, statement in enumerate(statements):
            for storage in statement.storages():
                self._uses.setdefault(storage, []).append(index)
            if statement.kind is not Kind.VIEW:
                self._writes.update(dict.fromkeys(written(statement), index))
            made = statement.result if statement.kind is Kind.CALL else None
            if made is not None and made.storages == {made.number}:
                self._sizes[made.number] = made.nbytes

    def all(self, start: int, stop: int) -> Iterator[_Later]:
        """Yield those of some statements, whose effects are gradients that arrive."""
        for index in range(start, stop):
            statement = self._statements[index]
            if statement.moves and type(statement.args[1]) is Value:
                found = self._later(index, statement.args[1], start, stop)
                if found is not None:
                    yield found

    def _later(self, end: int, gradient: Value, start: int, stop: int) -> _Later | None:
        size = sum(self._sizes.get(storage, 0) for storage in gradient.storages)
        if size < LIMITS.large or len(gradient.storages) != 1:
            return None
        indices = {end}
        own = set[Storage]()
        todo = set(gradient.storages)
        while todo:
            storage = todo.pop()
            users, touched = self._makers(storage, own, end, start)
            if users and (not own or self._bytes(touched) < self._sizes[storage]):
                own.add(storage)
                indices |= users
                todo |= touched
            elif not own:
                return None
        operands = {storage: index for index in sorted(indices, reverse=True) for storage in self._reads(index, own)}
        if any(not self._stays(storage, first) for storage, first in operands.items()):
            return None
        kept = self._bytes(storage for storage in operands if self._uses[storage][-1] < stop)
        return _Later(sorted(indices), kept, self._bytes(own) - size) if size >= LIMITS.late * kept else None

    def _stays(self, operand: Storage, first: int) -> bool:
        """Return whether an operand is the program's own, and is not written to after a statement has used it."""
        return operand in self._sizes and operand not in self._kept and self._writes[operand] <= first

    def _makers(self, storage: Storage, own: set[Storage], end: int, start: int) -> tuple[set[int], set[Storage]]:
        """Return the statements that use a memory if they write to it only, or into what is made of it; and what they use.

        Args:
            storage: the memory.
            own: what is made later already.
            end: the statement that hands the gradient over.
            start: the first that may be one of them.
        """
        users = {index for index in self._uses[storage] if index != end}
        targets = own | {storage}
        if storage not in self._sizes or not all(start <= each < end and self._pure(each, targets) for each in users):
            return set(), set()
        return users, {each for index in users for each in self._reads(index, targets)}

    def _reads(self, index: int, own: set[Storage]) -> frozenset[Storage]:
        return self._statements[index].storages() - own

    def _pure(self, index: int, targets: set[Storage]) -> bool:
        statement = self._statements[index]
        values = [*statement.values(), *([] if statement.result is None else [statement.result])]
        plain = statement.kind is not Kind.EFFECT and not statement.uses and not statement.checked
        return plain and all(len(each.storages) == 1 for each in values) and written(statement) <= targets

    def _bytes(self, storages: Iterable[Storage]) -> int:
        return sum(self._sizes.get(storage, 0) for storage in storages)


def written(statement: Statement) -> frozenset[Storage]:
    """Return the storages of what a statement makes or writes to."""
    value = statement.result if statement.target is None else statement.target
    return frozenset() if value is None else value.storages
