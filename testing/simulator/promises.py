"""Promises of a simulated workload: values of references as arguments of calls, and of calls that make references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.errors import RpcError
from ...rpc import rpc_async
from ...rref import remote, value
from .calls import journal
from .journal import PlannedError, call, check_error
from .references import Kept, fetch_one, make, make_slowly, put, refuse, shelf

if TYPE_CHECKING:
    from .worker import Worker


def take(number: int, *given: list[int]) -> int:
    """Return the sum of values that were promised."""
    journal().ran(number)
    return sum(each[0] for each in given)


def together(*given: list[int]) -> list[int]:
    """Return a value made of others."""
    return [sum(each[0] for each in given)]


async def use(worker: Worker) -> None:
    """Call a function with the values of references, of which some may not be made yet."""
    given = _some(worker)
    expected = sum(key for _, key in given)
    found = await call(worker, journal(), worker.anyone(), take, *(value(reference) for reference, _ in given))
    if found != expected:
        worker.simulation.violation(f"{worker.name} got {found} of promised values, not {expected}")


async def chain(worker: Worker) -> None:
    """Make values of values, on several workers, and fetch the last one."""
    kept = _some(worker)
    for _ in range(worker.random.randint(1, 3)):
        made = remote(worker.anyone(), together, tuple(value(reference) for reference, _ in kept))
        kept = [(made, sum(key for _, key in kept)), *_some(worker)[:1]]
    put(worker, kept[0])
    try:
        await fetch_one(worker, *kept[0])
    except PlannedError:
        worker.simulation.violation(f"a chain of {worker.name} failed as only another one may")


def plus_one(number: int) -> int:
    """Return the next number."""
    return number + 1


async def pass_on(worker: Worker) -> None:
    """Call functions one after another with the futures of the calls before them."""
    start, length = worker.random.randrange(1 << 30), worker.random.randint(2, 5)
    try:
        futures = [rpc_async(worker.anyone(), plus_one, (start,))]
        for _ in range(length - 1):
            futures.append(rpc_async(worker.anyone(), plus_one, (futures[-1],)))
        found = await futures[-1]
    except RpcError as error:
        check_error(worker.simulation, f"a chain of calls at {worker.name}", error)
        return
    if found != start + length:
        worker.simulation.violation(f"a chain of calls of {worker.name} gave {found}, not {start + length}")


async def use_failing(worker: Worker) -> None:
    """Call a function with a value that cannot be made: the call raises what the value's function raised."""
    broken = remote(worker.anyone(), refuse, (1,))
    entry_error: Exception | None = None
    try:
        await remote(worker.anyone(), together, (value(broken),)).to_here_async()
    except PlannedError:
        return
    except RpcError as error:
        entry_error = error
    if entry_error is None:
        worker.simulation.violation("a value of a value that was never made was fetched")
    else:
        check_error(worker.simulation, f"a promise at {worker.name}", entry_error)


def _some(worker: Worker) -> list[Kept]:
    """Return one to three references: some that are kept, and a new one, whose value is made meanwhile."""
    key = worker.random.randrange(1 << 30)
    new: Kept = (remote(worker.anyone(), worker.random.choice([make, make_slowly]), (key,)), key)
    mine = shelf(worker)
    return [new, *worker.random.sample(mine, min(len(mine), worker.random.randint(0, 2)))]
