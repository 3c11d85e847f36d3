"""Simulated worker: an agent, its process, and what its user code needs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterable
from contextvars import Context
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...agents.assembly import add_parts
from ...proto.rpc_pb2 import WorkerRecord
from ...rpc.extend import Agent, GrpcRpcBackendOptions, Shutdown, WorkerRecords, current_agent
from .events import Action, Process, State
from .lane import SimulatedLane
from .threads import Scheduler, SimulatedExecutor, SimulatedLoop

if TYPE_CHECKING:
    from .simulation import Simulation

APPROACH_SECONDS = 1.0
HANDSHAKE_TURNS = 40  # of a slow process, for one handshake
SECRET = b"one secret for a simulated job"
_workers: dict[Agent, Worker] = {}


class Worker(Process):
    """Worker of a simulation.

    Attributes:
        agent: its agent, a real one.
        name: ``w0``, ``w1``, ...
        rank: its rank.
        random: a source of random numbers for its user code.
        simulation: the simulation that it belongs to.
        state: whether its process runs, is stopped or is dead.
        joined: it is in the job.
        leaves: it leaves, and another worker is to take its place.
        replaced: it was lost or has left, and another worker may have its place.
        threads: those of its code that blocks, in order.

    Args:
        simulation: the simulation.
        rank: its number, which is its rank unless it takes the place of another.
        options: of its agent.
        secret: of the job.
        place: its rank, if it takes the place of another.
    """

    def __init__(
        self,
        simulation: Simulation,
        rank: int,
        options: GrpcRpcBackendOptions,
        secret: bytes,
        place: int | None = None,
    ) -> None:
        super().__init__(rank)
        self.simulation = simulation
        self.place = rank if place is None else place
        self.name = f"w{self.place}"
        self.label = self.name if place is None else f"{self.name}, number {rank}"
        self.joined = place is None
        self.leaves = self.replaced = False
        self.threads: dict[Any, None] = {}
        self.random = random.Random(f"{simulation.seed}/worker {rank}")
        queue = simulation.queue
        if self.place % 3 == 2:  # as on a machine of its own: it maps no memory of others
            options = replace(options, lanes=["tcp"])
        self.scheduler = Scheduler(random.Random(f"{simulation.seed}/threads {rank}"))
        threads = self.threads if simulation.workload.blocks else None
        self.executor = SimulatedExecutor(queue, self, self.scheduler, threads)
        self.loop = SimulatedLoop(queue, self, self.scheduler, self._report)
        self.agent = Agent(
            self.name,
            self.place,
            options,
            lanes=[SimulatedLane(simulation.network, self)],
            executor=self.executor,
            loop=self.loop.as_asyncio,
            io_loop=SimulatedLoop(queue, self, self.scheduler, self._report).as_asyncio,
            now=lambda: queue.now,
            secret=secret,
        )
        if place is None:
            add_parts(self.agent)
        self.agent.record.identity = self.random.randbytes(16)
        self._context = self.agent.new_context()
        _workers[self.agent] = self

    @property
    def alive(self) -> bool:
        """Return whether it takes part in the job: its process runs or is stopped, and it was not expelled."""
        return self.joined and self.state is not State.DEAD and not self.agent.closed

    def has_lost(self, other: Worker) -> bool:
        """Return whether this worker counts another as lost; also one that was lost before this one joined."""
        peers = self.agent.peers
        return other.rank not in peers or bool(peers.at(other.rank).gone)

    def start(self, records: WorkerRecords) -> None:
        """Start its agent among the workers of these records."""
        self.agent.start(records)

    def enter(self, records: WorkerRecords, absent: Iterable[WorkerRecord]) -> None:
        """Start its agent in a job that runs.

        Args:
            records: the workers of the job.
            absent: the last workers of the places that have none.
        """
        self.agent.joined(records, True, self.simulation.places, absent)
        add_parts(self.agent)
        self._context = self.agent.new_context()
        self.joined = True
        self.agent.start()

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run user code of this worker."""
        return self.loop.create_task(coroutine, context=self._fresh_context())

    def handshake_seconds(self) -> float:
        """Return how long it takes to answer a dialer: longer, if it is slow, than it takes to suspect a silent one."""
        return HANDSHAKE_TURNS * self.scheduler.pause() if self.scheduler.slow else 0.0

    def run(self, action: Action) -> None:
        """Run an event of this worker, as a thread of its process would."""
        self._fresh_context().run(action)

    def anyone(self) -> int:
        """Return the rank of some worker, which may be this one, or sometimes one that is gone."""
        ranks = range(self.simulation.places)
        rank = self.random.choice(ranks)
        return self.random.choice(ranks) if self.agent.peers.find(rank).gone else rank

    async def shut_down(self) -> None:
        """Do what ``rpc.shutdown()`` does, without a thread that blocks."""
        shutdown = self.agent.part(Shutdown)
        shutdown.begin()
        while not shutdown.finished.done() and not self.agent.closed:
            shutdown.dial_missing()
            await asyncio.sleep(APPROACH_SECONDS)
        if not self.agent.closed:
            await self.agent.control.drain()
        self.agent.close()

    def end_threads(self) -> None:
        """End its code that blocks: its process has ended."""
        for thread in list(self.threads):
            thread.end()

    def forget(self) -> None:
        """Remove this worker from those that ``current_worker`` finds."""
        del _workers[self.agent]

    def _fresh_context(self) -> Context:
        return self._context.copy()

    def _report(self, context: dict[str, Any]) -> None:
        if self.state is not State.DEAD:
            problem = context.get("exception") or context.get("message")
            self.simulation.violation(f"a coroutine of {self.name} raised {problem!r}")


def current_worker() -> Worker:
    """Return the simulated worker for whose agent a function runs."""
    return _workers[current_agent()]
