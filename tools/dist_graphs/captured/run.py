"""Random steps on real processes, over one lane."""

from __future__ import annotations

import gc
import json
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ....agents import init_rpc
from ....launcher import spawn
from ....rpc import rpc_sync, shutdown
from ....rpc.extend import GrpcRpcBackendOptions
from .compare import compare
from .program import make_program

LANES = {"unix": ["unix", "grpc"], "tcp": ["tcp", "grpc"], "grpc": ["grpc"]}


class StepsReport(NamedTuple):
    """Report of many random steps.

    Attributes:
        steps: how many were made compiled.
        replays: how many of these were replayed.
        reasons: why the others ran eagerly, with counts.
        problems: by seed, how a step differs.
    """

    steps: int
    replays: int
    reasons: dict[str, int]
    problems: dict[int, str]

    def lines(self) -> list[str]:
        """Return it in words."""
        share = 100 * self.replays / max(self.steps, 1)
        return [
            f"{self.steps} steps, {self.replays} replayed ({share:.0f} %), {len(self.problems)} wrong",
            *(f"  {count} eager: {reason}" for reason, count in Counter(self.reasons).most_common()),
            *(f"seed {seed}: {problem}" for seed, problem in self.problems.items()),
        ]


def run_steps(seeds: range, workers: int) -> StepsReport:
    """Compare the steps of some seeds on the workers of this job.

    Args:
        seeds: the seeds.
        workers: number of workers.
    """
    steps, replays, reasons = 0, 0, Counter[str]()
    problems: dict[int, str] = {}
    for seed in seeds:
        try:
            outcome = compare(make_program(seed, workers))
        except Exception as error:
            problems[seed] = f"{type(error).__name__}: {error}"
            continue
        steps, replays = steps + outcome.steps, replays + outcome.replays
        for reason, count in outcome.reasons.items():
            reasons[_in_general(reason)] += count
        if outcome.problem is not None:
            problems[seed] = outcome.problem
    return StepsReport(steps, replays, dict(reasons), problems)


def run_on_processes(lane: str, seeds: range, workers: int) -> StepsReport:
    """Compare the steps of some seeds on processes that this function starts and ends.

    Args:
        lane: a key of ``LANES``.
        seeds: the seeds.
        workers: number of processes.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        spawn(_work, (lane, seeds.start, seeds.stop, workers, str(path)), workers)
        steps, replays, reasons, problems = json.loads(path.read_text())
    return StepsReport(steps, replays, reasons, {int(seed): text for seed, text in problems.items()})


def _work(rank: int, lane: str, first: int, end: int, workers: int, path: str) -> None:
    init_rpc(f"w{rank}", rpc_backend_options=GrpcRpcBackendOptions(lanes=LANES[lane]))
    if rank == 0:
        Path(path).write_text(json.dumps(run_steps(range(first, end), workers)))
        for each in [*range(workers)] * workers:  # a plan of one holds parts of others
            rpc_sync(each, gc.collect)  # plans are cycles, and hold references
    shutdown()


def _in_general(reason: str) -> str:
    """Return a reason without names of workers and numbers."""
    return re.sub(r"\d+", "N", re.sub(r"worker 'w\d+'", "a worker", reason))[:160]
