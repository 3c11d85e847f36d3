"""Restarts of simulated workers: one that was killed, expelled or has left is started again, and takes its place in the job.

The log that a file holds in a real job is one object here, which all workers read in the same state. The worker that joins does
what ``rpc/rendezvous/entering.py`` does; the members run their real ``LoggedGroup``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.futures import Future, attempt, complete_once
from ...proto.rpc_pb2 import WorkerRecord
from ...rpc.extend import LoggedGroup, WorkerRecords
from ...rpc.rendezvous.group_members import GroupMembers
from .events import State
from .worker import SECRET, Worker

if TYPE_CHECKING:
    from .simulation import Simulation

LOOK_SECONDS = 0.1
LONGEST_RESTART_SECONDS = 5.0
LONGEST_ABSENCE_SECONDS = 10.0  # of a worker that has left
EXIT_SECONDS = 1.0  # from the end of an agent to that of its process


class SimulatedLog:
    """Members of the simulated job, with the interface of ``GroupLog`` that a ``LoggedGroup`` needs."""

    def __init__(self, places: int) -> None:
        self.members = GroupMembers(places=places)

    def read(self, seconds: float) -> GroupMembers:
        """Return the members now."""
        return self.members

    def leave(self, number: int, seconds: float) -> None:
        """Note that the worker of a number has left or is lost."""
        self.members.remove(number)


class Restarts:
    """Restarts of one simulation.

    Attributes:
        pending: workers that are to be started again, or join at the moment.
        groups: by worker, its part in the group.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.pending = 0
        self.groups: dict[Worker, LoggedGroup] = {}
        self._simulation = simulation
        self._rng = random.Random(f"{simulation.seed}/restarts")
        self._log = SimulatedLog(simulation.places)

    def found(self, workers: list[Worker]) -> None:
        """Let the first workers begin the job."""
        for worker in workers:
            self._log.members.add(worker.agent.record)
        for worker in workers:
            worker.agent.joined(self._log.members.founders, True, self._simulation.places)
            self._open(worker)

    def _open(self, worker: Worker) -> None:
        later: Any = lambda function: _later(worker, function)  # noqa: E731
        self.groups[worker] = LoggedGroup(worker.agent, self._log, later)  # type: ignore[arg-type]
        worker.agent.on_expelled.append(lambda reason: self._exit(worker, LONGEST_RESTART_SECONDS))

    def leave(self, worker: Worker) -> None:
        """Let a worker leave when its messages have arrived; later another takes its place."""
        worker.leaves = True
        worker.spawn(self._leave(worker))

    async def _leave(self, worker: Worker) -> None:
        await worker.agent.control.drain()
        if not worker.agent.closed:  # else it was expelled
            worker.agent.close()
            self._exit(worker, LONGEST_ABSENCE_SECONDS)

    def _exit(self, worker: Worker, seconds: float) -> None:
        """End the process of a closed agent soon, and start another after some seconds."""
        self.pending += 1
        self._simulation.queue.after(EXIT_SECONDS, None, "exit", lambda: self._end(worker, seconds))

    def _end(self, worker: Worker, seconds: float) -> None:
        self.pending -= 1
        worker.state = State.DEAD
        self._simulation.network.kill(worker)
        worker.end_threads()
        self._simulation.reach.look()
        self.begin(worker.place, self._rng.random() * seconds)

    def begin(self, place: int, seconds: float) -> None:
        """Start the worker of a place again after some seconds."""
        self.pending += 1
        self._simulation.queue.after(seconds, None, "restart", lambda: self._start(place))

    def _start(self, place: int) -> None:
        """Start it if the job counts the one before it as lost; wait for that else, and give up if the job has ended."""
        if not self._simulation.living():
            self.pending -= 1
            return
        taken = [each for each in self._log.members.records() if each.rank == place]
        if taken:
            self._simulation.queue.after(LOOK_SECONDS, None, "restart", lambda: self._start(place))
            return
        simulation = self._simulation
        for worker in simulation.workers:
            worker.replaced = worker.replaced or worker.place == place
        number = len(simulation.workers)
        worker = Worker(simulation, number, replace(simulation.options), SECRET, place)
        simulation.workers.append(worker)
        worker.agent.listen()
        self._log.members.add(worker.agent.record)
        assert worker.agent.record.number == number
        worker.spawn(self._join(worker))

    async def _join(self, worker: Worker) -> None:
        """Ask all earlier members to know the worker, then start its agent. Start another if the job has lost it meanwhile."""
        knowers: dict[int, set[int]] = {}
        while True:
            members, me = self._log.members, worker.agent.record
            if members.number_of(me) is None or not self._simulation.living():
                self._give_up(worker)
                return
            known = [
                each
                for each in members.records()
                if each.number <= me.number and all(each.number in those for those in knowers.values())
            ]
            silent = [each.number for each in known if each.number not in {me.number, *knowers}]
            if not silent:
                break
            for number in silent:
                self._ask(worker, self._simulation.workers[number], knowers)
            await asyncio.sleep(LOOK_SECONDS)
        self._enter(worker, known, members.absent(me.number, {each.number for each in known}))

    def _give_up(self, worker: Worker) -> None:
        worker.state = State.DEAD
        self._simulation.network.kill(worker)
        self._simulation.queue.after(LOOK_SECONDS, None, "restart", lambda: self._start(worker.place))

    def _ask(self, worker: Worker, member: Worker, knowers: dict[int, set[int]]) -> None:
        network = self._simulation.network
        if member not in self.groups or network.is_cut(worker.rank, member.rank):
            return

        async def answer() -> None:
            if member.agent.closed:
                return
            records = await self.groups[member].admit(worker.agent.record)
            numbers = {each.number for each in records}
            if worker.rank in numbers and not network.is_cut(worker.rank, member.rank):
                network.queue.after(network.latency(), worker, "answer", lambda: knowers.update({member.rank: numbers}))

        if member.alive:
            network.queue.after(network.latency(), member, "question", lambda: member.spawn(answer()))

    def _enter(self, worker: Worker, known: list[WorkerRecord], absent: list[WorkerRecord]) -> None:
        self.pending -= 1
        worker.enter(WorkerRecords.of(known), absent)
        self._open(worker)
        self._simulation.reach.watch(worker)
        self._simulation.begin_work(worker)


def _later(worker: Worker, function: Callable[[], None]) -> Future[None]:
    """Run a function as a thread of the worker does, and return its future."""
    done: Future[None] = Future()

    def run() -> None:
        _, error = attempt(function)
        complete_once(done, error=error)

    worker.executor.submit(run)
    return done
