"""Random expressions split over simulated workers, while messages are late and workers are killed."""

from __future__ import annotations

from typing import Any

from ...autograd_dist import backward_async
from ...core.extend import Tensor
from ...testing.simulator import Worker
from ..repeated import COMPLETE, Repeated
from .compare import differences, gradients_across
from .leaves import Leaves
from .plan import make_plan


class Graphs(Repeated):
    """Workload of random expressions, whose gradients are compared."""

    what = "an expression"

    def begin(self, worker: Worker) -> None:
        worker.agent.add_part(Leaves())

    async def one(self, worker: Worker) -> None:
        seed, mode = worker.random.randrange(1 << 30), worker.random.choice(("smart", "fast"))
        plan = make_plan(seed, len(worker.simulation.workers), mode, blocking=False)
        found = await gradients_across(plan, _backward)
        self.counts[COMPLETE] += 1
        for problem in differences(plan, found):
            worker.simulation.violation(f"{mode} {seed} at {worker.name}: {problem}")


async def _backward(context_id: int, roots: list[Tensor], retain: bool, mode: Any) -> None:
    await backward_async(context_id, roots, retain, mode=mode)
