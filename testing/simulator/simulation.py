"""Simulation: workers run under faults for a number of events; then all heals, settles, is checked and shut down."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.futures import thread_role
from ...rpc.extend import GrpcRpcBackendOptions, WorkerRecords
from .checks import audit, check_closed, check_names, check_settled, check_verdicts, unsettled
from .events import EventQueue, State
from .faults import FaultPlan, Faults
from .network import Network
from .reach import Reach
from .restarts import Restarts
from .small_pieces import small_pieces
from .threads import RefusesToWait
from .worker import SECRET, Worker
from .workload import Workload

OPTIONS = GrpcRpcBackendOptions(rpc_timeout=5.0, keepalive=1.0, reconnect_timeout=3.0)
LONGEST_FAULT_SECONDS = 12.0  # longer than it takes to lose a silent worker
AUDIT_EVENTS = 2000  # how many events pass between two looks at the references; cycles are collected then, too
END_SECONDS = 30.0  # simulated: by then, without faults, all work must have ended
PHASE_LOOK_SECONDS = 1.0  # simulated, between two checks whether a phase is over
MOST_EVENTS_AT_ONCE = 10_000  # at one moment of simulated time
MOST_VIOLATIONS = 20
WINDOWS = [(1, 1), (20_000, 2), (100_000, 20)]  # bytes and messages that may be under way on a session


class Violation(Exception):
    """Guarantee that did not hold."""


@dataclass
class Result:
    """Result of a run.

    Attributes:
        seed: its seed.
        events: how many events happened.
        seconds: how long it took, in simulated time.
        digest: equal for equal runs.
        faults: how often each kind of fault happened.
        kinds: how often each kind of event happened.
        work: what the workload counted.
        lost: names of the workers that were lost.
        violations: guarantees that did not hold; empty is good.
        last: the last events before the first violation.
    """

    seed: int
    events: int = 0
    seconds: float = 0.0
    digest: str = ""
    faults: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)


class Simulation:
    """Run of a workload on simulated workers.

    Args:
        seed: decides everything that happens.
        agents: how many workers.
        events: how many events happen before the workload is told to end.
        workload: what the workers do; the default uses everything that the package offers.
        plan: which faults happen; the default draws a plan from the seed.
        restarts: workers that are killed are started again, and take their places in the job.
        options: of the agents; time-outs count in simulated seconds. The default draws the size of the windows from the seed.
    """

    def __init__(
        self,
        seed: int,
        agents: int = 8,
        events: int = 10_000,
        workload: Workload | None = None,
        plan: FaultPlan | None = None,
        options: GrpcRpcBackendOptions | None = None,
        restarts: bool = False,
    ) -> None:
        if agents < 2:
            raise ValueError(f"agents must be at least 2; you gave {agents}")
        options = options or _drawn_options(seed)
        self.options = replace(options, replace_within=END_SECONDS / 3) if restarts else options
        self.seed = seed
        self.busy = True  # the workload goes on
        self.ending = False  # the workers shut down
        self.result = Result(seed)
        self.queue = EventQueue()
        self.network = Network(self.queue, random.Random(f"{seed}/network"), options.keepalive)
        self.workload = workload or _default_workload()
        self.plan = plan or FaultPlan.drawn(seed, LONGEST_FAULT_SECONDS)
        self.places = agents
        self._events = events
        self._over = False
        self.workers: list[Worker] = []
        for rank in range(agents):
            self.workers.append(Worker(self, rank, replace(self.options), SECRET))
        self.reach = Reach(self)
        self.restarts = Restarts(self) if restarts else None
        self._tasks: dict[Worker, asyncio.Task[Any]] = {}
        self.faults = Faults(self, self.plan)

    def run(self) -> Result:
        """Run the simulation to its end.

        Returns:
            The result; ``violations`` is empty if every guarantee held.
        """
        with on_this_thread(self._logged), small_pieces():
            try:
                self._run()
            except Violation as violation:
                self.violation(str(violation))
            finally:
                self.end()
        self.result.events = self.queue.executed
        self.result.seconds = self.queue.now
        self.result.digest = self.queue.digest()
        self.result.kinds = dict(self.queue.kinds)
        self.result.faults = dict(self.faults.counts)
        self.result.work = dict(self.workload.counts)
        return self.result

    def violation(self, what: str) -> None:
        """Record that a guarantee does not hold, and the events before it."""
        if self._over or len(self.result.violations) >= MOST_VIOLATIONS:
            return
        if not self.result.violations:
            self.result.last = self.queue.last()
        self.result.violations.append(what)

    def living(self) -> list[Worker]:
        """Return the workers that take part in the job."""
        return [worker for worker in self.workers if worker.alive]

    # -- the phases of a run

    def start(self) -> None:
        """Start the workers, as if they had come from a rendezvous."""
        for worker in self.workers:
            worker.agent.listen()
        records = WorkerRecords.of(worker.agent.record for worker in self.workers)
        if self.restarts is not None:
            self.restarts.found(self.workers)
        for worker in self.workers:
            worker.start(records)

    def begin_work(self, worker: Worker) -> None:
        """Run the workload on a worker."""
        self._tasks[worker] = worker.spawn(self._program(worker))

    async def _program(self, worker: Worker) -> None:
        await self.workload.main(worker)
        if self.ending:  # it was started again when the others had called shutdown
            await worker.shut_down()

    def _run(self) -> None:
        self.start()
        for worker in self.workers:
            self.begin_work(worker)
        tasks = self._tasks
        self.faults.start()
        while self.queue.executed < self._events:
            self._step()
        self.busy = False
        self.faults.end()
        if not self._until(lambda: not self._restarting() and self._done(), END_SECONDS):
            self._hangs("the workload", tasks)
        for worker in self.living():
            if tasks[worker].done() and (error := tasks[worker].exception()) is not None:
                self.violation(f"the workload of {worker.name} raised {error!r}")
        self._until(self._is_settled, END_SECONDS)
        self._report(check_settled(self))
        self._report(check_verdicts(self))
        self._report(check_names(self))
        self._report(self.workload.check(self))
        if not self.result.violations:  # else it would hang for the same reason
            self._shut_down()
            self._report(check_closed(self))

    def _restarting(self) -> bool:
        return self.restarts is not None and self.restarts.pending > 0

    def _done(self) -> bool:
        return all(self._tasks[worker].done() for worker in self.living())

    def _shut_down(self) -> None:
        self.ending = True
        tasks = {worker: worker.spawn(worker.shut_down()) for worker in self.living()}
        if self.restarts is not None:
            self.faults.kill_soon()
        if not self._until(lambda: not self._restarting() and not self.living(), END_SECONDS):
            self._hangs("shutdown", {worker: task for worker, task in tasks.items() if not worker.agent.closed})
        self._until(lambda: not len(self.queue), END_SECONDS)

    def _hangs(self, what: str, tasks: dict[Worker, asyncio.Task[Any]]) -> None:
        for worker, task in tasks.items():
            if worker.alive and not task.done():
                pending = worker.agent.debug_info()["pending"]
                self.violation(f"{what} of {worker.name} hangs; it waits for {pending or 'nothing that has a name'}")

    def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Run events until a condition holds; return False if that takes more than so many simulated seconds."""
        limit = self.queue.now + seconds
        while not condition():
            if self.queue.now > limit:
                return False
            look_again = self.queue.now + PHASE_LOOK_SECONDS
            while self.queue.now < look_again:
                if not self._step():
                    return condition()
        return True

    def _step(self) -> bool:
        if self.queue.executed % AUDIT_EVENTS == 0:
            self._audit()
        if len(self.result.violations) >= MOST_VIOLATIONS:
            raise Violation
        if self.queue.standstill > MOST_EVENTS_AT_ONCE:
            raise Violation(f"something never ends: {self.queue.standstill} events happened at one moment")
        return self.queue.step()

    def _is_settled(self) -> bool:
        self._collect()
        return not unsettled(self)

    def _audit(self) -> None:
        self._collect()
        self._report(audit(self))

    def _collect(self) -> None:
        gc.collect()

    def _report(self, violations: Iterator[str]) -> None:
        for violation in violations:
            self.violation(violation)

    # -- the end

    def end(self) -> None:
        """Close everything. Errors of coroutines of killed workers are ignored."""
        self._over = True
        self.queue.standstill = 0
        self.faults.end()
        for worker in self.workers:
            worker.state = State.RUNNING
            if worker.joined or not worker.agent.closed:
                worker.agent.close("its simulation ended", farewell=False)
            for task in list(worker.loop.tasks):
                task.cancel()
        while self.queue.standstill <= MOST_EVENTS_AT_ONCE and self.queue.step():
            pass
        for worker in self.workers:
            worker.end_threads()
            worker.forget()

    def _logged(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR and "expelled from its job" not in record.getMessage():
            trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
            self.violation(f"an error was logged: {record.getMessage()}\n{trace}".rstrip())


class _Watch(logging.Handler):
    def __init__(self, found: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found(record)


@contextmanager
def on_this_thread(logged: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """Set this thread up: nothing may block, cycles are collected only on request, and logged errors are recorded.

    Args:
        logged: called with what the package logs.
    """
    log = logging.getLogger("telegrad")
    watch, blocker, propagate, collects = _Watch(logged), thread_role.blocker, log.propagate, gc.isenabled()
    log.addHandler(watch)
    log.propagate = False
    thread_role.blocker = RefusesToWait()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if collects:
            gc.enable()
        thread_role.blocker = blocker
        log.propagate = propagate
        log.removeHandler(watch)


def _drawn_options(seed: int) -> GrpcRpcBackendOptions:
    rng = random.Random(f"{seed}/options")
    window_bytes, window_messages = rng.choice([*WINDOWS, (OPTIONS.window_bytes, OPTIONS.window_messages)])
    return replace(OPTIONS, window_bytes=window_bytes, window_messages=window_messages)


def _default_workload() -> Workload:
    from .mixed import Mixed

    return Mixed()
