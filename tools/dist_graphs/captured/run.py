"""Random steps on real processes, over one lane."""

from __future__ import annotations

import gc
import re
from collections import Counter
from typing import NamedTuple

from ....rpc import rpc_sync
from ..job import on_processes
from .compare import compare
from .program import make_program


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
    steps, replays, reasons, problems = on_processes(run_and_free, lane, seeds, workers)
    return StepsReport(steps, replays, reasons, {int(seed): text for seed, text in problems.items()})


def run_and_free(seeds: range, workers: int) -> StepsReport:
    """Compare the steps of some seeds, and let the workers free their plans, which are cycles and hold references.

    Args:
        seeds: the seeds.
        workers: number of workers.
    """
    report = run_steps(seeds, workers)
    for each in [*range(workers)] * workers:  # a plan of one holds parts of others
        rpc_sync(each, gc.collect)
    return report


def _in_general(reason: str) -> str:
    """Return a reason without names of workers and numbers."""
    return re.sub(r"\d+", "N", re.sub(r"worker 'w\d+'", "a worker", reason))[:160]
