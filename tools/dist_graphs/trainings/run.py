"""Random trainings on real processes, over one lane, and in the simulator."""

from __future__ import annotations

from ....testing.simulator import Worker
from ....testing.simulator.blocking import blocking
from ...repeated import COMPLETE, Repeated
from ..job import on_processes
from .compare import run_training
from .program import make_training


def train_on_processes(lane: str, seeds: range, workers: int) -> dict[int, list[str]]:
    """Compare the trainings of some seeds on processes that this function starts and ends; return what is wrong, by seed.

    Args:
        lane: a key of ``LANES``.
        seeds: the seeds.
        workers: number of processes.
    """
    found = on_processes(train_all, lane, seeds, workers)
    return {int(seed): problems for seed, problems in found.items()}


def train_all(seeds: range, workers: int) -> dict[int, list[str]]:
    """Return what is wrong with the trainings of some seeds, on the workers of this job, by seed.

    Args:
        seeds: the seeds.
        workers: number of workers.
    """
    found = {seed: train(seed, workers) for seed in seeds}
    return {seed: problems for seed, problems in found.items() if problems}


def train(seed: int, workers: int) -> list[str]:
    """Return what is wrong with the training of a seed, on the workers of this job.

    Args:
        seed: the seed.
        workers: number of workers.
    """
    try:
        return run_training(make_training(seed, workers))
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


class Trainings(Repeated):
    """Workload of random trainings."""

    what = "a training"

    async def one(self, worker: Worker) -> None:
        plan = make_training(worker.random.randrange(1 << 30), len(worker.simulation.workers))
        problems = await blocking(worker, run_training, plan)
        self.counts[COMPLETE] += 1
        for problem in problems:
            worker.simulation.violation(f"training {plan.seed} at {worker.name}: {problem}")
