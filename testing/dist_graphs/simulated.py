"""Random expressions split over simulated workers, while messages are late and workers are killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ...autograd_dist.api import backward_async
from ...core.errors import AgentClosedError, RpcError
from ...core.extend import Tensor
from ...rpc.extend import current_agent
from ..simulator import Simulation, Worker, Workload
from ..simulator.journal import check_error
from .compare import differences, gradients_across
from .leaves import Leaves
from .plan import make_plan

THINK_SECONDS = 2.0  # mean pause before each expression


class Graphs(Workload):
    """Workload of random expressions; each ends with the gradients of one process, or with an error that a fault explains."""

    async def main(self, worker: Worker) -> None:
        worker.agent.add_part(Leaves())
        while worker.simulation.busy and not worker.agent.closed:
            await asyncio.sleep(worker.random.expovariate(1.0 / THINK_SECONDS))
            try:
                await self._one(worker)
            except AgentClosedError:
                return  # it was expelled
            except RpcError as error:
                check_error(worker.simulation, f"an expression at {worker.name}", error)

    async def _one(self, worker: Worker) -> None:
        seed, mode = worker.random.randrange(1 << 30), worker.random.choice(("smart", "fast"))
        plan = make_plan(seed, len(worker.simulation.workers), mode, blocking=False)
        found = await gradients_across(plan, _backward)
        self.counts["expressions"] += 1
        for problem in differences(plan, found):
            worker.simulation.violation(f"{mode} {seed} at {worker.name}: {problem}")


async def _backward(context_id: int, roots: list[Tensor], retain: bool, mode: str) -> None:
    await backward_async(current_agent(), context_id, roots, retain, mode)


def check(seeds: range, workers: int, events: int) -> Iterator[tuple[int, int, list[str]]]:
    """Run the simulator, and yield for each seed how many expressions were complete, and what was wrong.

    Args:
        seeds: the simulator's seeds, which decide the faults.
        workers: number of workers.
        events: events of each run.
    """
    for seed in seeds:
        workload = Graphs()
        result = Simulation(seed, workers, events, workload).run()
        yield seed, workload.counts["expressions"], result.violations
