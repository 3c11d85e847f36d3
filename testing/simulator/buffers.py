"""Buffers of a simulated workload: ranges are read and written, sealed ones fetched, while owners free them and are lost."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import RpcError
from ...rpc import Buffer
from ...rpc.buffers.owned import OwnedBuffers
from .calls import journal
from .journal import SLACK_SECONDS, call, check_error
from .worker import Worker, current_worker

if TYPE_CHECKING:
    from .mixed import Mixed
    from .simulation import Simulation

CELL_BYTES = 8
CELLS = 300
MOST_OWN = 4  # buffers of one worker
LONGEST_KEPT_SECONDS = 5.0
Cells = np.ndarray[Any, np.dtype[np.int64]]


class BufferRecord:
    """Record of a buffer: the values that each of its cells may have.

    A write that failed may still come: its values stay possible for ever.

    Args:
        buffer: the buffer, at its owner.
        apart: other workers cannot map it, as if they were on other machines.
    """

    def __init__(self, buffer: Buffer, apart: bool) -> None:
        self.buffer = buffer
        if apart:
            buffer._place = buffer._place._replace(mark=bytes(len(buffer._place.mark)))
        self.begun: list[list[int]] = [[] for _ in range(CELLS)]  # by cell, the values whose writes have begun
        self.failed: list[set[int]] = [set() for _ in range(CELLS)]
        self.possible: list[set[int]] = [{0} for _ in range(CELLS)]
        self.busy: set[int] = set()  # cells that are written to now
        self.sealed: Cells | None = None  # the values then
        self.freed = False
        self.left: list[tuple[Cells, Cells]] = []  # arrays of reads that failed, and their values then

    def reading(self, cells: range) -> Callable[[], list[set[int]]]:
        """Return a function that returns, when a read that begins now has ended, the values that it may find in each cell."""
        earlier = [(set(self.possible[cell]), len(self.begun[cell])) for cell in cells]
        return lambda: [values.union(self.begun[cell][begun:]) for cell, (values, begun) in zip(cells, earlier)]

    def begin(self, cells: range, values: Cells) -> None:
        """Note that a write begins."""
        self.busy.update(cells)
        for cell, value in zip(cells, values.tolist()):
            self.begun[cell].append(value)
            self.possible[cell].add(value)

    def end(self, cells: range, values: Cells, written: bool) -> None:
        """Note that a write has ended."""
        self.busy.difference_update(cells)
        for cell, value in zip(cells, values.tolist()):
            if written:
                self.possible[cell] = {value} | self.failed[cell]
            else:
                self.failed[cell].add(value)


class BufferRecords:
    """Records of the buffers of a simulation."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self._records: dict[tuple[int, int], BufferRecord] = {}

    def add(self, buffer: Buffer, apart: bool) -> None:
        """Record a new buffer."""
        self._records[buffer._owner, buffer._number] = BufferRecord(buffer, apart)

    def of(self, buffer: Buffer) -> BufferRecord:
        """Return the record of a buffer."""
        return self._records[buffer._owner, buffer._number]

    def owned(self, worker: Worker) -> list[BufferRecord]:
        """Return the records of a worker's buffers that are not freed."""
        return [each for (owner, _), each in self._records.items() if owner == worker.rank and not each.freed]

    def check(self, simulation: Simulation) -> Iterator[str]:
        """Yield what is wrong when everything has settled."""
        for record in self._records.values():
            for array, then in record.left:
                if not np.array_equal(array, then):
                    yield f"a read of {record.buffer} wrote to its array after it had failed"
        for worker in simulation.living():
            if worker.agent.has(OwnedBuffers):
                yield from _check_idle(worker)


def _check_idle(worker: Worker) -> Iterator[str]:
    """Check that no reader waits for a worker, and that no piece counts as sent that never comes."""
    for number, sources in worker.agent.part(OwnedBuffers)._sources.items():
        held = sources._waiting, sources._kept, sources._plan._sends, sources._machines._waits
        if any(held):
            yield f"buffer {number} of {worker.name} still has readers: {held}"


def records() -> BufferRecords:
    """Return the records of the simulation in which this function runs."""
    workload: Mixed = current_worker().simulation.workload  # type: ignore[assignment]
    return workload.buffers


def lend(number: int) -> Buffer:
    """Return a buffer of this worker, perhaps a new one."""
    journal().ran(number)
    worker, own = current_worker(), records().owned(current_worker())
    if not own or (len(own) < MOST_OWN and worker.random.random() < 0.3):
        records().add(Buffer(np.zeros(CELLS, np.int64)), worker.random.random() < 0.5)
        own = records().owned(worker)
    return worker.random.choice(own).buffer


async def use(worker: Worker) -> None:
    """Read and write ranges of a worker's buffer, or fetch it."""
    buffer = await call(worker, journal(), worker.anyone(), lend)
    for _ in range(worker.random.randint(1, 4)):
        await worker.random.choice((read, write, write, take))(worker, buffer)


async def end(worker: Worker) -> None:
    """Seal or free a buffer of this worker."""
    if not (own := records().owned(worker)):
        return
    record = worker.random.choice(own)
    if record.sealed is None:
        record.buffer.seal()
        record.sealed = record.buffer.tensor.numpy().copy()
    else:
        record.freed = True
        record.buffer.free()


async def read(worker: Worker, buffer: Buffer) -> None:
    """Read a range: each cell has a value that was there meanwhile."""
    record, cells, freed = records().of(buffer), _range(worker), records().of(buffer).freed
    allowed = record.reading(cells)
    out = np.full(len(cells), -1)
    try:
        await _ended(worker, f"a read of {buffer}", buffer.read_into_async, out, CELL_BYTES * cells.start)
    except RpcError:
        record.left.append((out, out.copy()))
        raise
    worker.simulation.workload.counts["read"] += 1
    wrong = [(cell, value) for cell, value, each in zip(cells, out.tolist(), allowed()) if value not in each]
    if wrong or freed:
        worker.simulation.violation(f"{worker.name} read {buffer}{' when it was freed' * freed}: wrong {wrong[:5]}")


async def write(worker: Worker, buffer: Buffer) -> None:
    """Write to a range to which nothing else writes now."""
    record, cells = records().of(buffer), _range(worker)
    if not record.busy.isdisjoint(cells):
        return
    refused, written = record.freed or record.sealed is not None, False
    values = np.array([next(records().numbers) for _ in cells])
    record.begin(cells, values)
    try:
        await _ended(worker, f"a write to {buffer}", buffer.write_from_async, values, CELL_BYTES * cells.start)
        written = True
    finally:
        record.end(cells, values, written)
    worker.simulation.workload.counts["written"] += 1
    if refused:
        worker.simulation.violation(f"{worker.name} wrote to {buffer}, which was sealed or freed")


async def take(worker: Worker, buffer: Buffer) -> None:
    """Fetch a buffer, lend it for a while, and write to the copy, which others do not see."""
    record, freed = records().of(buffer), records().of(buffer).freed
    try:
        values = await _ended(worker, f"a fetch of {buffer}", buffer.fetch_async)
    except RpcError as error:
        if "counted as lost" in str(error) and not worker.simulation.workers[buffer._owner].has_lost(worker):
            worker.simulation.violation(f"the fetch of {worker.name} failed, but it is not lost: {error}")
        raise
    worker.simulation.workload.counts["buffers fetched"] += 1
    if freed or record.sealed is None or not np.array_equal(values.numpy(), record.sealed):
        worker.simulation.violation(f"{worker.name} fetched {buffer}: freed {freed}, {values}, not {record.sealed}")
    values.zero_()
    await asyncio.sleep(worker.random.random() * LONGEST_KEPT_SECONDS)


async def _ended(worker: Worker, what: str, function: Any, *args: Any) -> Any:
    """Return what a transfer returns; it ends in time, and its errors have names."""
    simulation, seconds = worker.simulation, worker.random.choice((1.0, 5.0, 30.0))
    begun = simulation.queue.now
    try:
        return await function(*args, timeout=seconds)
    except RpcError as error:
        check_error(simulation, f"{what} at {worker.name}", error)
        raise
    finally:
        if (late := simulation.queue.now - begun - seconds) > simulation.plan.longest + SLACK_SECONDS:
            simulation.violation(f"{what} at {worker.name} ended {late:.1f} s after its time-out")


def _range(worker: Worker) -> range:
    start = worker.random.randrange(CELLS)
    return range(start, worker.random.randint(start + 1, CELLS))
