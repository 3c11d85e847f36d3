"""Run of a node's part of a job, in one round or in several, from its first worker to the verdict."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from ..engines.ending_signals import ending_signals
from ..engines.starter import WorkerStarter
from ..errors import NodeError
from ..job import launch
from ..restarts.history import RestartHistory
from ..restarts.rules import RestartPolicy
from ..result import JobResult
from ..spec import JobSpec, numbered, parse_roles, role_of
from .assignment import Placement
from .conclusion import concluded, outcome_of, told_to_others
from .options import NodeOptions
from .rounds import NextRound

if TYPE_CHECKING:
    from .member import Membership  # loads gRPC and TLS


def run_on_node(
    spec: JobSpec, options: NodeOptions, roles: str | None, name: str, tell: Callable[[str], None]
) -> JobResult:
    """Join a job on several machines and run this one's part; join again, if the host is lost and may come back.

    Args:
        spec: the job, with this node's workers; they get their names when all have come.
        options: of this node.
        roles: ``--roles``; None without.
        name: beginning of the workers' names.
        tell: called with each line for the user.

    Raises:
        NodeError: the nodes do not come together.
        TokenError: this node has no token, or another one.
    """
    from .rendezvous import joined  # loads gRPC and TLS, which jobs on one machine do without

    past: tuple[str, ...] = ()
    result, number = None, 0
    while True:
        try:
            with joined(options, len(spec.workers), roles, name, spec.restarts, number) as node:
                tell(_part_line(node.placement))
                result = run_node(replace(spec, workers=node.placement.workers), node, tell)
        except NodeError as error:
            if result is None:
                raise
            tell(str(error))
            return result
        result = replace(result, restarts=(*past, *result.restarts))
        first = spec.restarts.of(role_of(parse_roles(roles)[0] if roles else numbered(name, 1)[0]))
        if not node.host_lost or first is not RestartPolicy.ALL or not result.may_begin_again:
            return result
        where = f"{options.host}:{options.port}"
        tell(
            f"{node.host_lost}; all workers are started again if it comes back to {where} within {options.timeout:g} s"
        )
        past = (*result.restarts, f"all workers after {result.seconds:.1f} s: {node.host_lost}")
        spec, number = replace(spec, log_dir=result.log_dir), node.round + 1
        options = replace(options, rank=node.placement.node)


def _part_line(part: Placement) -> str:
    first, last = part.first_rank, part.first_rank + len(part.workers) - 1
    ranks = f"rank {first}" if first == last else f"ranks {first} to {last}"
    return (
        f"node {part.node} of {part.nodes}: {ranks} of {part.world_size}, reached at {part.host}; "
        f"rank 0 at {part.master_host}:{part.master_port}"
    )


def run_node(spec: JobSpec, node: "Membership", tell: Callable[[str], None]) -> JobResult:
    """Run the workers of a node until the whole job is over, and return the result with its verdict.

    Args:
        spec: the node's part of the job.
        node: membership in the job.
        tell: called with each line for the user.
    """
    history = RestartHistory(spec.restarts, len(spec.workers))
    for _ in range(node.placement.round):  # this node has come back
        history.begin_round()
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
        history.begin_round()
        spec = replace(spec, log_dir=result.log_dir)
