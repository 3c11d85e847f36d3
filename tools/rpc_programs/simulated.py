"""Random programs on simulated workers, while messages are late, links are cut and workers are killed."""

from __future__ import annotations

from ...testing.simulator import Worker
from ..repeated import COMPLETE, Repeated
from .lanes import differences
from .model import results_in_one_process
from .program import make_program
from .run import results_across


class Programs(Repeated):
    """Workload of random programs, whose results are compared."""

    what = "a program"

    async def one(self, worker: Worker) -> None:
        program = make_program(worker.random.randrange(1 << 30), len(worker.simulation.workers), blocking=False)
        found = await results_across(program)
        self.counts[COMPLETE] += 1
        for problem in differences(results_in_one_process(program), found, program):
            worker.simulation.violation(f"program {program.seed} at {worker.name}: {problem}")
