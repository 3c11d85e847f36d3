"""``python -m telegrad.tools.scale``: what jobs of more and more workers cost, in the simulator: real agents on one thread.

Each job starts, calls, gathers at a barrier and shuts down, without faults. An event should cost the same in a job of any size:
it should run as many lines of Python. Its CPU time grows where the agents, all of one process, do not fit into the processor's
cache.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..proto.rpc_pb2 import WorkerRecord
from ..rpc.extend import Gathering, GrpcRpcBackendOptions, call_function
from ..rpc.group.gathering import _arrive
from ..rpc.rendezvous.members import MemberList
from ..testing.counts import lines_run
from ..testing.simulator.faults import FaultPlan
from ..testing.simulator.simulation import Simulation, on_this_thread
from ..testing.simulator.worker import Worker
from ..testing.simulator.workload import Workload

SIZES = (30, 100, 300, 1000)
SECONDS = 3600.0  # simulated, until a call fails
NEIGHBOURS = (1, 7, 13)  # others, in the smallest job too


@dataclass(frozen=True)
class Cost:
    """Cost of one phase of a job.

    Attributes:
        phase: its name.
        workers: size of the job.
        spent: by all workers together: seconds of CPU time, or lines of Python.
        events: how many events happened; for the rendezvous and the start, one for each worker.
    """

    phase: str
    workers: int
    spent: float
    events: int

    @property
    def of_event(self) -> float:
        """Cost of an event, in the unit of ``spent``."""
        return self.spent / self.events


def lines(workers: int) -> list[Cost]:
    """Return how many lines of Python each phase of a job runs: they depend on neither the machine nor its caches."""
    with lines_run() as count:
        return measure(workers, count)


def measure(workers: int, meter: Callable[[], float] = time.process_time) -> list[Cost]:
    """Return what each phase of a job costs.

    Args:
        workers: how many.
        meter: returns what was spent so far; CPU time unless it is given.
    """
    simulation = job(workers, SECONDS)
    with on_this_thread(lambda record: simulation.violation(record.getMessage())):
        phases: dict[str, Callable[[], None]] = {
            "rendezvous": lambda: _join(workers),
            "start": simulation.start,
            "calls": lambda: _everywhere(simulation, _call),
            "barrier": lambda: _everywhere(simulation, _wait_for_all),
            "shutdown": lambda: _everywhere(simulation, Worker.shut_down),
        }
        costs = [_metered(phase, simulation, run, meter) for phase, run in phases.items()]
        for worker in simulation.workers:
            worker.forget()
    if simulation.result.violations:
        raise RuntimeError(simulation.result.violations[0])
    return costs


def job(workers: int, keepalive: float) -> Simulation:
    """Return a job without faults, that does not run yet.

    Args:
        workers: how many.
        keepalive: simulated seconds after which a silent connection is checked.
    """
    options = GrpcRpcBackendOptions(rpc_timeout=SECONDS, keepalive=keepalive)
    return Simulation(1, workers, 0, Workload(), FaultPlan.drawn(1, 0.0), options)


def call_and_gather(simulation: Simulation) -> None:
    """Let each worker call three others and come to a barrier of all."""
    _everywhere(simulation, _call)
    _everywhere(simulation, _wait_for_all)


def _metered(phase: str, simulation: Simulation, run: Callable[[], None], meter: Callable[[], float]) -> Cost:
    gc.collect()
    executed, began = simulation.queue.executed, meter()
    run()
    spent, events = meter() - began, simulation.queue.executed - executed
    workers = len(simulation.workers)
    return Cost(phase, workers, spent, events or workers)


def _join(workers: int) -> None:
    members = MemberList(workers)
    for rank in range(workers):
        members.join(WorkerRecord(name=f"w{rank}", rank=rank, identity=rank.to_bytes(4, "big")), workers)
    assert members.complete


def _everywhere(simulation: Simulation, work: Callable[[Worker], Awaitable[None]]) -> None:
    left = len(simulation.workers)

    async def run(worker: Worker) -> None:
        nonlocal left
        await work(worker)
        left -= 1

    for worker in simulation.workers:
        worker.spawn(run(worker))
    while left and simulation.queue.step():
        pass
    if left:
        raise RuntimeError(f"{left} workers did not end")


def _echo(number: int) -> int:
    return number


async def _call(worker: Worker) -> None:
    count = len(worker.simulation.workers)
    for distance in NEIGHBOURS:
        to = (worker.rank + distance) % count
        assert await call_function(worker.agent, to, _echo, (worker.rank,), None, SECONDS) == worker.rank


async def _wait_for_all(worker: Worker) -> None:
    ticket = worker.agent.part(Gathering).ticket(())
    await call_function(worker.agent, 0, _arrive, ((), worker.name, ticket, None, SECONDS), None, SECONDS)


def show(unit: str, costs: Sequence[Cost], scale: float = 1.0) -> None:
    """Print a table: what an event costs, by phase and size.

    Args:
        unit: of the numbers, in a few letters.
        costs: of all sizes.
        scale: what one of the costs is in that unit.
    """
    sizes = sorted({cost.workers for cost in costs})
    print(f"{unit} an event".ljust(14), *(f"{size:>8}" for size in sizes))
    for phase in dict.fromkeys(cost.phase for cost in costs):
        row = [cost.of_event * scale for cost in costs if cost.phase == phase]
        print(phase.ljust(14), *(f"{each:8.1f}" for each in row))


def draw(costs: Sequence[Cost], file: Path) -> None:
    """Draw the table, on logarithmic axes; needs matplotlib.

    Args:
        costs: of all sizes.
        file: the picture.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    axes = (figure := Figure(figsize=(6, 4), layout="constrained")).subplots()
    for phase in dict.fromkeys(cost.phase for cost in costs):
        chosen = [cost for cost in costs if cost.phase == phase]
        axes.loglog(
            [cost.workers for cost in chosen], [cost.of_event * 1e6 for cost in chosen], marker="o", label=phase
        )
    axes.set(xlabel="workers of the job", ylabel="CPU time an event, µs")
    # Numbers are written out: 40, and not 4 × 10¹.
    for axis, ticks in (
        (axes.xaxis, FixedLocator(sorted({cost.workers for cost in costs}))),
        (axes.yaxis, LogLocator(subs=(1, 2, 5))),
    ):
        axis.set(major_locator=ticks, minor_locator=NullLocator(), major_formatter=FuncFormatter("{:,g}".format))
    axes.legend()
    figure.savefig(file, dpi=120)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure jobs of some sizes, print a table, and draw it if asked to."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.scale", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, help=f"numbers of workers; {SIZES} if none is given")
    parser.add_argument("--picture", type=Path, help="draw it, into this file")
    given = parser.parse_args(arguments)
    sizes = given.sizes or SIZES
    measure(min(sizes))  # what is loaded and made once is no cost of an event
    costs = [cost for size in sizes for cost in measure(size)]
    show("µs", costs, 1e6)
    show("lines", [cost for size in sizes for cost in lines(size)])
    if given.picture:
        draw(costs, given.picture)


if __name__ == "__main__":
    main()
