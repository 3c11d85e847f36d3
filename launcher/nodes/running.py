"""Run of a node's part of a job, in one round or in several, from its first worker to the verdict."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from ..engines.ending_signals import ending_signals
from ..engines.starter import WorkerStarter
from ..job import JobResult, launch
from ..restarts.history import RestartHistory
from ..spec import JobSpec
from .conclusion import concluded, outcome_of, told_to_others
from .rounds import NextRound

if TYPE_CHECKING:
    from .member import Membership  # loads gRPC and TLS


def run_node(spec: JobSpec, node: "Membership", tell: Callable[[str], None]) -> JobResult:
    """Run the workers of a node until the whole job is over, and return the result with its verdict.

    Args:
        spec: the node's part of the job.
        node: membership in the job.
        tell: called with each line for the user.
    """
    history = RestartHistory(spec.restarts, len(spec.workers))
    for _ in range(node.placement.round):  # this node has come back
        history.begin_round(range(len(spec.workers)))
    with closing(WorkerStarter(spec, tell)) as starter:
        return _run_rounds(spec, node, tell, history, starter)


def _run_rounds(
    spec: JobSpec, node: "Membership", tell: Callable[[str], None], history: RestartHistory, starter: WorkerStarter
) -> JobResult:
    past: list[str] = []
    while True:
        with told_to_others(node):
            result = launch(spec, node=node, tell=tell, history=history, starter=starter)
        answer = node.finish(outcome_of(result))
        result = replace(result, restarts=(*past, *result.restarts))
        if not isinstance(answer, NextRound):
            return concluded(result, node, answer)
        tell(answer.line)
        past.append(answer.past)
        with ending_signals() as signals:
            if (signum := signals.wait(answer.delay)) is not None:
                result = replace(result, interrupted_by=signum, exit_code=128 + signum, cause=None)
                node.tell(outcome_of(result))
                return result
        node.renew_folders()
        history.begin_round(range(len(spec.workers)))
        spec = replace(spec, log_dir=result.log_dir)
