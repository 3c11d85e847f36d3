"""References of a simulated workload: created, fetched, passed on, returned, stored and dropped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ...base.errors import RpcError
from ...rref import RRef, remote
from .calls import journal
from .journal import PlannedError, call, check_error
from .worker import Worker, current_worker

if TYPE_CHECKING:
    from .mixed import Mixed

MOST_KEPT = 12
Kept = tuple[RRef, int]  # a reference, and the key of its value


def shelf(worker: Worker) -> list[Kept]:
    """Return the references that a worker keeps: none that come when its program is over, from a call that was late."""
    workload: Mixed = worker.simulation.workload  # type: ignore[assignment]
    return workload.shelves.get(worker.rank, [])


def make(key: int) -> list[int]:
    """Return a new value."""
    return [key]


async def make_slowly(key: int) -> list[int]:
    """Return a new value, after some time."""
    await asyncio.sleep(0.2)
    return [key]


def refuse(key: int) -> None:
    """Raise, so that no value is made."""
    raise PlannedError(f"value {key} was not to be made")


def keep(number: int, given: list[Kept]) -> None:
    """Store references that arrived."""
    journal().ran(number)
    for kept in given:
        put(current_worker(), kept)


def lend(number: int) -> list[Kept]:
    """Return some references to the caller."""
    journal().ran(number)
    return _some(current_worker())


def put(worker: Worker, kept: Kept) -> None:
    """Store a reference in place of an old one."""
    mine = shelf(worker)
    mine.append(kept)
    if len(mine) > MOST_KEPT:
        del mine[worker.random.randrange(len(mine))]


async def create(worker: Worker) -> None:
    """Create a reference to a new value on some worker."""
    function = worker.random.choice([make, make, make_slowly])
    key = worker.random.randrange(1 << 30)
    reference = remote(worker.anyone(), function, (key,))
    put(worker, (reference, key))
    if worker.random.random() < 0.3:
        await fetch_one(worker, reference, key)


async def create_failing(worker: Worker) -> None:
    """Create a reference whose value cannot be made: fetching raises what its function raised."""
    reference = remote(worker.anyone(), refuse, (1,))
    try:
        await reference.to_here_async()
    except PlannedError:
        return
    except RpcError as error:
        check_error(worker.simulation, f"to_here() at {worker.name}", error)
        return
    worker.simulation.violation("a value was never made, and fetched")


async def own(worker: Worker) -> None:
    """Create a reference to a value of this worker."""
    key = worker.random.randrange(1 << 30)
    put(worker, (RRef([key]), key))


async def fetch(worker: Worker) -> None:
    """Fetch a value."""
    for reference, key in _some(worker, most=1):
        await fetch_one(worker, reference, key)


async def fetch_one(worker: Worker, reference: RRef, key: int) -> None:
    """Fetch a value and check that it is the right one."""
    counts = worker.simulation.workload.counts
    try:
        value = await reference.to_here_async()
    except Exception as error:
        counts["fetches failed"] += 1
        if reference._fork.error is not None:
            return  # its creating call never arrived, or its owner is lost
        check_error(worker.simulation, f"to_here() of {reference} at {worker.name}", error)
        return
    counts["fetched"] += 1
    if value != [key]:
        worker.simulation.violation(f"{reference} gave {value}, not {[key]}")


async def give(worker: Worker) -> None:
    """Pass several references on in one message."""
    given = _some(worker)
    if given:
        await call(worker, journal(), worker.anyone(), keep, given)


async def borrow(worker: Worker) -> None:
    """Ask another worker for references."""
    lent = await call(worker, journal(), worker.anyone(), lend)
    for kept in lent:
        put(worker, kept)


async def drop(worker: Worker) -> None:
    """Drop references."""
    mine = shelf(worker)
    for _ in range(worker.random.randint(1, 3)):
        if mine:
            del mine[worker.random.randrange(len(mine))]


def _some(worker: Worker, most: int = 3) -> list[Any]:
    mine = shelf(worker)
    return worker.random.sample(mine, min(len(mine), worker.random.randint(1, most)))
