"""``Blocks``: a statement that runs a chain of element-wise calls block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..core.extend import Array
from .values import Kind, Statement, Storage, Value, values_in


@dataclass(slots=True, eq=False)
class Blocks(Statement):
    """A chain of element-wise calls with results of one shape, which run in turn for each block.

    Attributes:
        parts: the calls, and views of arrays as other dtypes.
        inner: results that only the chain uses: they need memory for one block.
        flat: whether blocks are of elements in order; else of rows.
        length: the number of elements, or of rows.
        step: the length of a block.
    """

    parts: tuple[Statement, ...] = ()
    inner: tuple[Value, ...] = ()
    flat: bool = True
    length: int = 0
    step: int = 0

    @staticmethod
    def of(parts: Sequence[Statement], inner: Sequence[Value], flat: bool, length: int, step: int) -> Blocks:
        """Return the statement; the arguments are its attributes."""
        return Blocks(Kind.CALL, cut, (), parts=tuple(parts), inner=tuple(inner), flat=flat, length=length, step=step)

    def values(self) -> Sequence[Value]:
        """Return the values that exist before it."""
        made = {part.result.number for part in self.parts if part.result is not None}
        return [value for part in self.parts for value in part.values() if value.number not in made]

    def storages(self) -> frozenset[Storage]:
        inner = frozenset(storage for value in self.inner for storage in value.storages)
        return frozenset(storage for part in self.parts for storage in part.storages()) - inner

    def made(self) -> list[Value]:
        """Return the results that are used outside."""
        inner = {value.number for value in self.inner}
        calls = (part for part in self.parts if part.kind is not Kind.VIEW)
        return [part.result for part in calls if part.result is not None and part.result.number not in inner]

    def overwritable(self, value: Value) -> Iterator[Value]:
        """Return the values that can lie in the same memory as a result: no call reads them after it is written."""
        roots = self._roots()
        reads: dict[Storage, int] = {}
        users: dict[Storage, set[int]] = {}
        written = 0
        for index, part in enumerate(self.parts):
            for each in part.values():
                for storage in each.storages:
                    reads[storage] = index
                    users.setdefault(storage, set()).add(roots.get(each.number, each.number))
            written = index if part.result is value else written
        for each in self.values():
            if all(users[storage] == {each.number} and reads[storage] <= written for storage in each.storages):
                yield each

    def slots(self) -> tuple[dict[int, int], list[int]]:
        """Return the number of a block's memory for each inner value, and the sizes of these memories in bytes."""
        roots = self._roots()
        ends = {roots.get(v.number, v.number): index for index, part in enumerate(self.parts) for v in part.values()}
        inner = {value.number for value in self.inner}
        found: dict[int, int] = {}
        sizes: list[int] = []
        free: list[int] = []
        for index, part in enumerate(self.parts):
            result = part.result
            read = {roots.get(value.number, value.number) for value in part.values()}
            # An element-wise call may write over an operand of the same size of elements.
            free += [found[number] for number in sorted(read) if number in found and ends[number] == index]
            if result is not None and result.number in inner:
                size = self.step * prod(() if self.flat else result.shape[1:]) * result.dtype.itemsize
                slot = next((each for each in free if sizes[each] == size), len(sizes))
                if slot == len(sizes):
                    sizes.append(size)
                else:
                    free.remove(slot)
                found[result.number] = slot
                if result.number not in ends:
                    free.append(slot)
        return found, sizes

    def _roots(self) -> dict[int, int]:
        """Return for each view the number of the value that has its memory."""
        roots: dict[int, int] = {}
        for part in self.parts:
            if part.kind is Kind.VIEW and part.result is not None:
                number = part.args[0].number
                roots[part.result.number] = roots.get(number, number)
        return roots

    def block_of(self, value: Value) -> Value:
        """Return the value of a block of another value."""
        example = np.empty((self.step,) if self.flat else (self.step, *value.shape[1:]), value.dtype)
        return Value(value.number, value.storages, example)

    def divided(self, operand: Any) -> bool:
        """Return whether a block needs a block of an operand; else it needs all of it."""
        if type(operand) is not Value:
            return False
        shape = self.shape
        if self.flat:
            return prod(operand.shape) == prod(shape) and prod(shape) != 1
        return len(operand.shape) == len(shape) and operand.shape[0] == shape[0]

    @property
    def shape(self) -> Any:
        """The shape of the results."""
        part = self.parts[0]
        return (part.result or part.target).shape  # type: ignore[union-attr]

    def operands(self) -> dict[int, Value]:
        """Return the values that are cut into blocks, by their numbers."""
        views, found = self._roots(), dict[int, Value]()
        for part in self.parts:
            value = part.result or part.target
            if part.kind is Kind.VIEW:
                found.setdefault(part.args[0].number, part.args[0])
            elif value is not None:
                found[value.number] = value
                found.update((each.number, each) for each in values_in(part.args) if self.divided(each))
        return {number: value for number, value in found.items() if number not in views}


def flattened(array: Array) -> Array:
    """Return the elements of an array in order: a view, or a copy if they are not in order in memory.

    The gradient of a result comes from outside, and may have any layout.
    """
    return array.reshape(-1)


def written_back(array: Array, flat: Array) -> None:
    """Write the elements that ``flattened`` gave back to the array, if they are a copy."""
    if not array.flags.c_contiguous:
        array[...] = flat.reshape(array.shape)


def cut(flat: bool, length: int, step: int, arrays: Sequence[Array], scratch: Sequence[Array]) -> list[tuple[Any, ...]]:
    """Return for each block its slice, the blocks of some arrays, and memory for a block.

    Args:
        flat: whether blocks are of elements in order; else of rows.
        length: the number of elements, or of rows.
        step: the length of a block.
        arrays: to be cut.
        scratch: memory of blocks, of ``step`` elements or rows each.
    """
    whole = [flattened(array) if flat else array for array in arrays]
    places = [slice(start, min(start + step, length)) for start in range(0, length, step)]
    return [
        (place, *[array[place] for array in whole], *[each[: place.stop - place.start] for each in scratch])
        for place in places
    ]
