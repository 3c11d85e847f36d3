"""Objects and functions of the programs: what runs on the workers, and in the one process that it is compared with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from ...core.futures import Future
from ...rpc import functions, rpc_async, rpc_sync
from ...rref import RRef

MODULUS = 1_000_003
FAILING_SHARE = 7  # a stream whose first number is divisible by it fails after its last item


class ProgramError(Exception):
    """Error that a program raises as planned."""


def combine(left: int, right: int) -> int:
    """Return a number that depends on both, and on their order."""
    return (left * 31 + right) % MODULUS


def fail(left: int, right: int) -> int:
    """Raise."""
    raise ProgramError(left)


class Cell:
    """Object with a number, and at most one reference to another cell in a container."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.held: dict[str, list[Any]] = {"cells": []}

    def add(self, number: int) -> int:
        """Add to the number, and return it."""
        self.number = (self.number + number) % MODULUS
        return self.number

    def read(self) -> int:
        """Return the number."""
        return self.number

    def plus(self, number: int) -> Cell:
        """Return a new cell, whose number depends on both."""
        return Cell(combine(self.number, number))

    def with_number(self, number: int) -> int:
        """Return a number that depends on both."""
        return combine(self.number, number)

    def put_in(self, cell: Any) -> int:
        """Keep a reference in the place of the one before; return this cell's number."""
        self.held["cells"] = [cell]
        return self.number

    def take_out(self) -> Any:
        """Return the reference that is kept, which stays; ``None`` if there is none."""
        return self.held["cells"][0] if self.held["cells"] else None


def new_cell(left: int, right: int) -> Cell:
    """Return a cell, whose number depends on both."""
    return Cell(combine(left, right))


class Parcel:
    """Object that takes references with it."""

    def __init__(self, number: int, cells: list[Any]) -> None:
        self.number = number
        self.inside = {"cells": tuple(cells)}


def returned(number: int) -> RRef:
    """Return a reference to a new cell of this worker."""
    return RRef(Cell(number))


# -- ways to run a function


async def slowly(name: str, left: int, right: int) -> int:
    """Run the function of that name, in a coroutine."""
    await asyncio.sleep(0)
    return FUNCTIONS[name](left, right)


@functions.async_execution
def promised(name: str, left: int, right: int, to: int) -> Future[int]:
    """Have another worker run it, and hold no thread meanwhile."""
    return rpc_async(to, call_named, (name, left, right)).then(lambda done: done.value())


async def passed_on(name: str, left: int, right: int, to: int) -> int:
    """Have another worker run it, and wait for the result."""
    result: int = await rpc_async(to, call_named, (name, left, right))
    return result


def passed_on_blocking(name: str, left: int, right: int, to: int) -> int:
    """Do the same in a thread that blocks."""
    result: int = rpc_sync(to, call_named, (name, left, right))
    return result


def call_named(name: str, left: int, right: int) -> int:
    """Run the function of that name."""
    return FUNCTIONS[name](left, right)


def listed(name: str, left: int, right: int) -> list[int]:
    """Run the function of that name, and return its result in a list."""
    return [FUNCTIONS[name](left, right)]


FUNCTIONS = {"combine": combine, "fail": fail}
GRAPH_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **FUNCTIONS,
    "new_cell": new_cell,
    "plus": Cell.plus,
    "with_number": Cell.with_number,
}


# -- ways to use a cell


async def use(cell: RRef, method: str, arguments: tuple[Any, ...]) -> Any:
    """Call a method of a cell, by a reference that this worker was given."""
    return await getattr(cell.rpc_async(), method)(*arguments)


def use_blocking(cell: RRef, method: str, arguments: tuple[Any, ...]) -> Any:
    """Do the same in a thread that blocks."""
    return getattr(cell.rpc_sync(), method)(*arguments)


async def use_elsewhere(cell: RRef, method: str, arguments: tuple[Any, ...], to: int) -> Any:
    """Give the reference on to another worker, which uses it."""
    return await rpc_async(to, use, (cell, method, arguments))


async def add_from(parcel: Parcel) -> Parcel:
    """Add an object's number to each cell that it refers to, one after the other; return another such object."""
    for cell in parcel.inside["cells"]:
        parcel.number = await use(cell, "add", (parcel.number,))
    return Parcel(parcel.number, list(reversed(parcel.inside["cells"])))


# -- streams


def items(start: int, count: int) -> Iterator[int]:
    """Yield numbers, and fail after them if the first is of a kind."""
    for number in range(count):
        yield combine(start, number)
    if start % FAILING_SHARE == 0:
        raise ProgramError(start)


async def items_slowly(start: int, count: int) -> AsyncIterator[int]:
    """Do the same, asynchronously."""
    for number in items(start, count):
        await asyncio.sleep(0)
        yield number


def cells(start: int, count: int) -> Iterator[RRef]:
    """Yield references to new cells of this worker."""
    for number in items(start, count):
        yield RRef(Cell(number))


async def cells_slowly(start: int, count: int) -> AsyncIterator[RRef]:
    """Do the same, asynchronously."""
    for cell in cells(start, count):
        await asyncio.sleep(0)
        yield cell
