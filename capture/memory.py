"""Plan of memory: which results are written into memory that stays between replays, and which of them share it.

A storage needs its memory from the statement that makes it to the last one that uses it. Before and after that the memory is
free for another storage of that size or a smaller one. Memory that others may keep is not planned: NumPy makes it anew in
each replay. So it does with large arrays: they are freed at their last use, and take no memory between replays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from .errors import Unrecordable
from .limits import LIMITS
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


@dataclass(slots=True, eq=False)
class Memory:
    """The plan: where the results of a program lie.

    Attributes:
        places: by the numbers of values, the buffers that they are written into.
        sizes: of the buffers, in bytes.
        anew: the storages of large results, which have new memory in each replay.
        over: by the number of such a result, the operand that it is written over.
        passing: the most bytes that these results take at one time.
        lanes: by the number of such a result, a lane in a picture; what is in one lane is not needed at the same time.
    """

    places: dict[int, int]
    sizes: list[int]
    anew: set[Storage]
    over: dict[int, Value]
    passing: int
    lanes: dict[int, int]


def plan_memory(statements: Sequence[Statement], half: int, kept: set[Storage]) -> Memory:
    """Return where each result lies.

    The largest values get buffers first, and smaller ones use the times between them. So no buffer ever has to grow.

    Args:
        statements: the program.
        half: the first statement of its backward half.
        kept: storages that must not be in a buffer.
    """
    tenants = _tenants(statements, half, kept)
    large = _large(statements, tenants)
    new = set(map(id, large))
    places, buffers = _packed([each for each in tenants if id(each) not in new])
    return Memory(
        places,
        [each.size for each in buffers],
        {storage for each in large for value in each.values for storage in value.storages},
        {number: operand for each in large for number, operand in each.over.items()},
        _most(large),
        _packed(large)[0],
    )


def _large(statements: Sequence[Statement], tenants: Sequence[_Tenant]) -> list[_Tenant]:
    """Return the tenants that have new memory in each replay."""
    uses = Counter(storage for statement in statements for storage in statement.storages())
    found = [each for each in tenants if each.size >= LIMITS.large]
    if _most(found) >= LIMITS.much:
        found = [each for each in tenants if each.size >= LIMITS.smaller]
    return [
        each
        for each in found
        if each.size >= LIMITS.use * sum(uses[storage] for value in each.values for storage in value.storages)
    ]


def _packed(tenants: Sequence[_Tenant]) -> tuple[dict[int, int], list[_Buffer]]:
    """Return the buffers for tenants, and for each value the number of its buffer."""
    buffers: list[_Buffer] = []
    places: dict[int, int] = {}
    for tenant in sorted(tenants, key=lambda each: (-each.size, each.first)):
        # The smallest buffer that is free at that time.
        place = next((i for i in range(len(buffers) - 1, -1, -1) if buffers[i].is_free(tenant)), len(buffers))
        if place == len(buffers):
            buffers.append(_Buffer(tenant.size))
        buffers[place].take(tenant)
        places.update(dict.fromkeys((value.number for value in tenant.values), place))
    return places, buffers


def _most(tenants: Sequence[_Tenant]) -> int:
    """Return the most bytes that are needed at one time."""
    changes = [(each.first, each.size) for each in tenants] + [(each.last + 1, -each.size) for each in tenants]
    return max(accumulate(change for _, change in sorted(changes)), default=0)


@dataclass(slots=True, eq=False)
class _Tenant:
    """Values of one size that use the same memory, one written over the other.

    Attributes:
        size: bytes.
        first, last: the first and the last statement that need it.
        values: in order.
        over: by the numbers of values, the operands in whose memory they are written.
    """

    size: int
    first: int
    last: int
    values: list[Value]
    over: dict[int, Value]


class _Buffer:
    """Memory that is used by one tenant after the other.

    Args:
        size: bytes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def is_free(self, tenant: _Tenant) -> bool:
        """Return whether no other tenant uses it at that time."""
        place = bisect_left(self._firsts, tenant.first)
        before = not place or self._lasts[place - 1] < tenant.first
        return before and (place == len(self._firsts) or tenant.last < self._firsts[place])

    def take(self, tenant: _Tenant) -> None:
        """Note the time of a tenant."""
        place = bisect_left(self._firsts, tenant.first)
        self._firsts.insert(place, tenant.first)
        self._lasts.insert(place, tenant.last)


def _tenants(statements: Sequence[Statement], half: int, kept: set[Storage]) -> list[_Tenant]:
    last, found = last_uses(statements, half), list[_Tenant]()
    owners: dict[Storage, _Tenant] = {}
    for index, statement in enumerate(statements):
        written = dict[Storage, _Tenant]()
        for value in statement.made():
            if not value.nbytes or not value.storages.isdisjoint(kept):
                continue
            (storage,) = value.storages
            operand = _in_place(statement, value, index, owners)
            if operand is None:
                tenant = _Tenant(value.nbytes, index, index, [], {})
                found.append(tenant)
            else:
                tenant = owners[next(iter(operand.storages))]
                tenant.over[value.number] = operand
            tenant.values.append(value)
            tenant.last = max(last[storage], index)
            written[storage] = tenant
        owners.update(written)
    return found


def _in_place(statement: Statement, value: Value, index: int, owners: dict[Storage, _Tenant]) -> Value | None:
    """Return an operand whose memory ends here and can be overwritten by the result of an element-wise function."""
    for operand in statement.overwritable(value):
        for storage in operand.storages if len(operand.storages) == 1 else ():
            tenant = owners.get(storage)
            if tenant is None or tenant.last != index:
                continue
            whole = tenant.values[-1]  # the operand may be a view of all its elements
            if operand.writeable and _fits(operand, value) and _fits(whole, value):
                return operand
    return None


def _fits(operand: Value, value: Value) -> bool:
    same = (operand.shape, operand.nbytes, operand.strides) == (value.shape, value.nbytes, value.strides)
    # Integers in the place of floating-point numbers, as where their bits are multiplied by a mask.
    return same and (operand.dtype == value.dtype or operand.dtype.kind + value.dtype.kind in ("fi", "if"))


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
