"""Calls of a simulated workload to many workers at once: each has a value or an error by name, and none runs twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np

from ...rpc import mesh, scattered
from .calls import SLOW_SECONDS, journal
from .journal import check_error

if TYPE_CHECKING:
    from ...rpc import ValueMesh
    from .journal import Entry
    from .worker import Worker

LARGE = 10_000  # numbers of an array that travels in a segment


async def doze(number: int, seconds: float, value: Any) -> Any:
    """Sleep for some simulated time, if it is the turn of this worker; return the value."""
    journal().ran(number)
    if number % 3 == 0:
        await asyncio.sleep(seconds)
    return value


async def together(worker: Worker) -> None:
    """Call a function on all workers, or some of them."""
    workers = list(mesh())
    called = mesh(worker.random.sample(workers, worker.random.randint(1, len(workers))))
    value = worker.random.choice([None, 7, np.arange(LARGE, dtype=float)])
    entries = [journal().begin(worker, info.id, 0.0) for info in called]
    values: Any = None
    try:
        seconds = worker.random.random() * SLOW_SECONDS
        values = await called.call_async(doze, (scattered([entry.number for entry in entries]), seconds, value))
    except BaseException as error:
        for entry in entries:
            journal().end(worker, entry, error, False)
        raise
    for place, entry in enumerate(entries):
        _end(worker, entry, values, place, value)


def _end(worker: Worker, entry: Entry, values: ValueMesh[Any], place: int, sent: Any) -> None:
    """Record the result of one worker."""
    found = values[place]
    error = found if isinstance(found, BaseException) else None
    journal().end(worker, entry, error, False)
    if error is None and not np.array_equal(found, sent):
        worker.simulation.violation(f"a call of {worker.name} on a mesh gave {found} at w{entry.to}, not {sent}")


async def added_up(worker: Worker) -> None:
    """Let each worker return a number, and check their sum."""
    called = mesh()
    entries = [journal().begin(worker, info.id, 0.0) for info in called]
    error: BaseException | None = None
    try:
        total = await called.call_async(doze, (scattered([entry.number for entry in entries]), 0.0, 1), reduce="sum")
        if total != len(entries):
            worker.simulation.violation(f"a sum over {len(entries)} workers is {total}")
    except BaseException as raised:
        error = raised
        raise
    finally:
        for entry in entries:
            entry.ended = True
        if isinstance(error, Exception):
            check_error(worker.simulation, f"a sum over a mesh at {worker.name}", error)
