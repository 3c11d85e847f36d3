"""Random trainings on real processes, over one lane, and in the simulator."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ....agents import init_rpc
from ....launcher import spawn
from ....rpc import shutdown
from ....rpc.extend import GrpcRpcBackendOptions
from ....testing.simulator import Worker
from ....testing.simulator.blocking import blocking
from ...repeated import COMPLETE, Repeated
from ..captured.run import LANES
from .compare import run_training
from .program import make_training


def train_on_processes(lane: str, seeds: range, workers: int) -> dict[int, list[str]]:
    """Compare the trainings of some seeds on processes that this function starts and ends; return what is wrong, by seed.

    Args:
        lane: a key of ``LANES``.
        seeds: the seeds.
        workers: number of processes.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        spawn(_work, (lane, seeds.start, seeds.stop, workers, str(path)), workers)
        return {int(seed): problems for seed, problems in json.loads(path.read_text()).items()}


def _work(rank: int, lane: str, first: int, end: int, workers: int, path: str) -> None:
    init_rpc(f"w{rank}", rpc_backend_options=GrpcRpcBackendOptions(lanes=LANES[lane]))
    if rank == 0:
        found = {seed: train(seed, workers) for seed in range(first, end)}
        Path(path).write_text(json.dumps({seed: problems for seed, problems in found.items() if problems}))
    shutdown()


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
