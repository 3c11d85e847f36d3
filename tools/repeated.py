"""Random checks in the simulator: a workload that makes one after the other, and the report of a command that runs it."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator

from ..base.errors import AgentClosedError, RpcError
from ..testing.simulator import Simulation, Worker, Workload
from ..testing.simulator.journal import check_error

THINK_SECONDS = 2.0  # mean pause before each
CHECKS_A_RUN = 10  # about that many a run of the simulator
EVENTS = 3000
COMPLETE = "complete"  # what ``counts`` counts


class Repeated(Workload):
    """Workload of random checks; each ends with what one process computes, or with an error that a fault explains."""

    what = "a check"

    def begin(self, worker: Worker) -> None:
        """Prepare a worker."""

    async def one(self, worker: Worker) -> None:
        """Make one check, and record a violation if it goes wrong; ``RpcError`` may leave it."""
        raise NotImplementedError

    async def main(self, worker: Worker) -> None:
        self.begin(worker)
        while worker.simulation.busy and not worker.agent.closed:
            await asyncio.sleep(worker.random.expovariate(1.0 / THINK_SECONDS))
            try:
                await self.one(worker)
            except AgentClosedError:
                return  # it was expelled
            except RpcError as error:
                check_error(worker.simulation, f"{self.what} at {worker.name}", error)


def check(
    make: Callable[[], Repeated], seeds: range, workers: int, events: int
) -> Iterator[tuple[int, int, list[str]]]:
    """Run the simulator, and yield for each seed how many checks were complete, and what was wrong.

    Args:
        make: makes the workload of a run.
        seeds: the simulator's seeds, which decide the faults.
        workers: number of workers.
        events: events of each run.
    """
    for seed in seeds:
        workload = make()
        result = Simulation(seed, workers, events, workload).run()
        yield seed, workload.counts[COMPLETE], result.violations


def report(make: Callable[[], Repeated], first: int, checks: int, workers: int, what: str) -> bool:
    """Run about so many checks in the simulator, print what happened, and return whether anything was wrong.

    Args:
        make: makes the workload of a run.
        first: the simulator's first seed.
        checks: how many.
        workers: number of workers.
        what: names the checks.
    """
    seeds = range(first, first + max(checks // CHECKS_A_RUN, 1))
    started, complete, wrong = time.perf_counter(), 0, 0
    for seed, count, problems in check(make, seeds, max(workers, 2), EVENTS):
        complete += count
        wrong += bool(problems)
        if problems:
            print(f"simulator, seed {seed}:", *problems, sep="\n  ", flush=True)
    seconds = time.perf_counter() - started
    print(f"{complete} {what} in {len(seeds)} runs of the simulator, {seconds:.1f} s: {wrong} runs wrong", flush=True)
    return bool(wrong)


def at_least_one(text: str) -> int:
    """Return the number on a command line.

    Raises:
        argparse.ArgumentTypeError: it is below 1.
    """
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"it must be at least 1; you gave {text}")
    return number
