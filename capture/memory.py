"""Plan of memory: which results are written into memory that stays between replays, and which of them share it.

A storage needs its memory from the statement that makes it to the last one that uses it. Then the memory is free for another
storage of the same size. Memory that others may keep is not planned: NumPy makes it anew in each replay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from .errors import Unrecordable
from .values import Statement, Storage, Value


def last_uses(statements: Sequence[Statement], half: int) -> dict[Storage, int]:
    """Return for each storage the index of the last statement that uses it.

    Args:
        statements: the program.
        half: the first statement of its backward half, which may run more than once: what that uses of the first half is used
            until the end.
    """
    found: dict[Storage, int] = {}
    made: set[Storage] = set()
    for index, statement in enumerate(statements):
        for storage in statement.storages():
            found[storage] = len(statements) if index >= half and storage in made else index
        if index < half:
            made |= statement.storages()
    return found


def escaping(statements: Sequence[Statement], results: Sequence[Value]) -> set[Storage]:
    """Return the storages that others may keep after a replay.

    Args:
        statements: the program.
        results: values that are returned.
    """
    found: set[Storage] = set()
    for value in results:
        found |= value.storages
    for statement in statements:
        if statement.escapes:
            for value in statement.values():
                found |= value.storages
    return found


def plan_memory(statements: Sequence[Statement], half: int, kept: set[Storage]) -> tuple[dict[int, int], list[int]]:
    """Return the buffer of each value that is written into one, by the value's number, and the sizes of the buffers in bytes.

    Args:
        statements: the program.
        half: the first statement of its backward half.
        kept: storages that must not be in a buffer.
    """
    last, sizes = last_uses(statements, half), list[int]()
    free: defaultdict[int, list[int]] = defaultdict(list)
    dying: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # by statement: (size, buffer)
    buffers: dict[int, int] = {}
    owners: dict[Storage, Value] = {}
    for index, statement in enumerate(statements):
        made = [value for value in statement.made() if value.nbytes and value.storages.isdisjoint(kept)]
        for value in made:
            reused = _in_place(statement, value, dying[index], owners, buffers)
            if reused is not None:
                dying[index].remove((value.nbytes, reused))
                buffer = reused
            else:
                buffer = free[value.nbytes].pop() if free[value.nbytes] else len(sizes)
                if buffer == len(sizes):
                    sizes.append(value.nbytes)
            buffers[value.number] = buffer
        _release(free, dying.pop(index, ()))
        for value in made:
            (storage,) = value.storages
            owners[storage] = value
            dying[last[storage]].append((value.nbytes, buffers[value.number]))
        _release(free, dying.pop(index, ()))
    return buffers, sizes


def _release(free: dict[int, list[int]], dead: Sequence[tuple[int, int]]) -> None:
    for size, buffer in dead:
        free[size].append(buffer)


def _in_place(
    statement: Statement,
    value: Value,
    dying: Sequence[tuple[int, int]],
    owners: dict[Storage, Value],
    buffers: dict[int, int],
) -> int | None:
    """Return the buffer of an operand that ends here and can take the result of an element-wise function."""
    for operand in statement.overwritable(value):
        if operand.number in buffers and _fits(operand, value):
            (storage,) = operand.storages
            if (value.nbytes, buffers[operand.number]) in dying and owners.get(storage) is operand:
                return buffers[operand.number]
    return None


def _fits(operand: Value, value: Value) -> bool:
    return (operand.shape, operand.dtype, operand.strides) == (value.shape, value.dtype, value.strides)


def check_second_half(statements: Sequence[Statement], half: int) -> None:
    """Raise if the backward half writes to memory of the first half, so that it could not run twice.

    Args:
        statements: the program.
        half: the first statement of its backward half.

    Raises:
        Unrecordable: it does.
    """
    made: set[Storage] = set()
    for statement in statements[:half]:
        made |= statement.storages()
    for statement in statements[half:]:
        if statement.target is not None and statement.target.storages & made:
            raise Unrecordable("the backward pass writes to memory of the forward pass")
