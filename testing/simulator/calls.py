"""Calls of a simulated workload: plain, with arrays, async functions, nested, failing, with short time-outs, to oneself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.futures import Future
from ...rpc import RetryPolicy, functions, idempotent, rpc_async, stream
from .journal import Journal, PlannedError, call
from .worker import Worker, current_worker

if TYPE_CHECKING:
    from .mixed import Mixed

SLOW_SECONDS = 2.0
SHORT_SECONDS = 0.5
RETRIED_SECONDS = 20.0


def journal() -> Journal:
    """Return the journal of the simulation in which this function runs."""
    workload: Mixed = current_worker().simulation.workload  # type: ignore[assignment]
    return workload.journal


def echo(number: int, value: Any) -> Any:
    """Return the argument."""
    journal().ran(number)
    return value


def fail(number: int) -> None:
    """Raise."""
    journal().ran(number)
    raise PlannedError(f"call {number} was to fail")


async def doze(number: int, seconds: float) -> int:
    """Sleep for some simulated time."""
    journal().ran(number)
    await asyncio.sleep(seconds)
    return number


async def nest(number: int, hops: list[int]) -> int:
    """Call the first worker of a list, which calls the next one."""
    journal().ran(number)
    if hops:
        await call(current_worker(), journal(), hops[0], nest, hops[1:])
    return number


@functions.async_execution
def hand_on(number: int, to: int) -> Future[Any]:
    """Return what another worker returns."""
    journal().ran(number)
    return rpc_async(to, int.bit_length, (number,))


async def count(number: int, end: int, fail: bool) -> AsyncIterator[int]:
    """Count, with pauses; raise in the end if it is to fail."""
    journal().ran(number)
    for item in range(end):
        await asyncio.sleep(current_worker().random.random())
        yield item
    if fail:
        raise PlannedError(f"stream {number} was to fail")


async def plain(worker: Worker) -> None:
    """Make a call with a small value."""
    value = worker.random.random()
    if await call(worker, journal(), worker.anyone(), echo, value) != value:
        worker.simulation.violation("a call returned another value than it was given")


@idempotent
def echo_again(value: Any) -> Any:
    """Return the argument; it may run again in another incarnation of the worker."""
    return value


async def retried(worker: Worker) -> None:
    """Make a call that waits for a worker that is started again."""
    value = worker.random.random()
    retry = RetryPolicy(attempts=1000, wait=(0.1, 2.0, 2.0))
    answer = await rpc_async(worker.anyone(), echo_again, (value,), timeout=RETRIED_SECONDS, retry=retry)
    worker.simulation.workload.counts["retried calls"] += 1
    if answer != value:
        worker.simulation.violation("a call that was sent again returned another value than it was given")


async def arrays(worker: Worker) -> None:
    """Make a call with an array, which the answer returns."""
    value = np.arange(worker.random.randrange(5000), dtype=np.float64)
    answer = await call(worker, journal(), worker.anyone(), echo, value)
    if not np.array_equal(answer, value):
        worker.simulation.violation("a call returned another array than it was given")


async def failing(worker: Worker) -> None:
    """Call a function that raises."""
    try:
        await call(worker, journal(), worker.anyone(), fail)
    except PlannedError:
        return
    worker.simulation.violation("a function raised, and its caller got an answer")


async def impatient(worker: Worker) -> None:
    """Make a call that may take longer than its time-out."""
    seconds = worker.random.random() * SLOW_SECONDS
    await call(worker, journal(), worker.anyone(), doze, seconds, timeout=SHORT_SECONDS)


async def streamed(worker: Worker) -> None:
    """Take some items of a stream; sometimes not all."""
    to, end, fail = worker.anyone(), worker.random.randrange(8), worker.random.random() < 0.3
    taken = worker.random.randint(1, 12)
    entry = journal().begin(worker, to, 2.0 * taken * worker.agent.rpc_timeout)
    items: list[int] = []
    error: BaseException | None = None
    try:
        async with stream(to, count, (entry.number, end, fail), ahead=worker.random.randrange(4)) as numbers:
            async for number in numbers:
                items.append(number)
                if len(items) == taken:
                    break
    except BaseException as problem:
        error = problem
        if not isinstance(problem, PlannedError):
            raise
    finally:
        if items != [*range(len(items))] or (error is None and len(items) != min(taken, end)):
            worker.simulation.violation(f"stream {entry.number} of {end} items, {taken} to be taken, gave {items}")
        journal().end(worker, entry, error, planned=True)
        del error


async def nested(worker: Worker) -> None:
    """Make a chain of calls."""
    hops = [worker.anyone() for _ in range(worker.random.randint(1, 4))]
    await call(worker, journal(), hops[0], nest, hops[1:])


async def handed_on(worker: Worker) -> None:
    """Make a call whose callee answers with a future of another call."""
    number = await call(worker, journal(), worker.anyone(), hand_on, worker.anyone())
    if not isinstance(number, int):
        worker.simulation.violation("a future that was handed on gave another value")


async def many(worker: Worker) -> None:
    """Make several calls at a time."""
    to = worker.anyone()
    calls = [call(worker, journal(), to, echo, index) for index in range(worker.random.randint(2, 6))]
    await asyncio.gather(*calls, return_exceptions=True)
