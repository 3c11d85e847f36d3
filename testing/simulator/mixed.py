"""Default workload: all that the package offers, in random order, on every worker."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from ...base.errors import AgentClosedError, RpcError
from ...core.extend import Tensor
from . import buffers, calls, captured_steps, gradients, meshes, once, promises, references
from .gatherings import gather
from .journal import Journal, check_error
from .worker import Worker
from .workload import Workload

if TYPE_CHECKING:
    from .simulation import Simulation

AT_A_TIME = 3  # activities of one worker
THINK_SECONDS = 3.0  # mean pause before each
MOST_THINK_SECONDS = 20.0  # a longer one would look as if the worker hung
Activity = Callable[[Worker], Awaitable[None]]
ACTIVITIES: dict[Activity, float] = {
    calls.plain: 3,
    calls.arrays: 1,
    calls.failing: 1,
    calls.impatient: 1,
    calls.nested: 2,
    calls.streamed: 2,
    calls.handed_on: 1,
    calls.many: 1,
    references.create: 4,
    references.create_failing: 0.5,
    references.own: 1,
    references.fetch: 3,
    references.give: 4,
    references.borrow: 2,
    references.drop: 2,
    promises.use: 2,
    promises.chain: 2,
    promises.pass_on: 2,
    promises.use_failing: 0.5,
    meshes.together: 1,
    meshes.added_up: 0.5,
    buffers.use: 1,
    buffers.end: 0.3,
    gradients.train: 1.5,
    captured_steps.train: 0.3,
}
WITH_RESTARTS = {**ACTIVITIES, calls.retried: 3, once.update: 6}


class Mixed(Workload):
    """Workload of all that the activities do, and of gatherings, in random order."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = Journal(self.counts)
        self.shelves: dict[int, list[references.Kept]] = {}
        self.parameters: dict[int, Tensor] = {}
        self.buffers = buffers.BufferRecords()
        self.ledgers = once.Ledgers()
        self.rounds: dict[tuple[str, int], dict[str, tuple[str, int]]] = {}

    async def main(self, worker: Worker) -> None:
        self.shelves[worker.rank] = []
        self.parameters[worker.rank] = gradients.weight_of(worker.place)
        restarts = worker.simulation.restarts is not None
        if restarts:
            once.begin(worker)
        await asyncio.gather(self._gather(worker), *(self._act(worker) for _ in range(AT_A_TIME)))
        if restarts and not worker.simulation.ending:
            await once.end(worker)
        del self.shelves[worker.rank]

    def check(self, simulation: Simulation) -> Iterator[str]:
        yield from self.journal.check()
        yield from self.buffers.check(simulation)
        if simulation.restarts is not None:
            yield from self.ledgers.check(simulation)

    async def _gather(self, worker: Worker) -> None:
        for number in itertools.count(worker.rank << 32):  # another incarnation's are others
            await _think(worker)
            if not worker.simulation.busy or worker.agent.closed:
                return
            try:
                await gather(worker, number)
            except RpcError as error:
                check_error(worker.simulation, f"a gathering at {worker.name}", error)

    async def _act(self, worker: Worker) -> None:
        while True:
            await _think(worker)
            if not worker.simulation.busy:
                return
            offered = ACTIVITIES if worker.simulation.restarts is None else WITH_RESTARTS
            activity = worker.random.choices(list(offered), list(offered.values()))[0]
            try:
                await activity(worker)
            except AgentClosedError:
                return  # it was expelled
            except RpcError as error:
                check_error(worker.simulation, f"{activity.__module__}.{activity.__qualname__} at {worker.name}", error)


async def _think(worker: Worker) -> None:
    await asyncio.sleep(min(worker.random.expovariate(1.0 / THINK_SECONDS), MOST_THINK_SECONDS))
