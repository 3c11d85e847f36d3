"""Restart of all workers of a job: the policy ``all``. The job ends, and begins anew in a further round."""

from collections.abc import Sequence

from ..supervisor import Supervisor
from .history import PastRestart, RestartHistory, WorkerFailure
from .rules import RestartPolicy


def restart_of_all(
    supervisor: Supervisor, policies: Sequence[RestartPolicy], history: RestartHistory, now: float
) -> PastRestart | None:
    """Return the restart that follows a round of a job; None if the job is over.

    Args:
        supervisor: of the round, finished.
        policies: of the workers, in order of rank.
        history: of the job; a restart is counted there.
        now: monotonic seconds.
    """
    failure = failure_for_all(supervisor, policies)
    if failure is None or not may_begin_again(supervisor, history):
        return None
    restart = history.decide(failure, tuple(range(len(policies))), now)
    if restart is not None:
        history.begin_round(restart.ranks)
    return restart


def may_begin_again(supervisor: Supervisor, history: RestartHistory) -> bool:
    """Return whether nothing forbids a further round: the user, a worker that cannot be killed, one restarted too often.

    Args:
        supervisor: of the round, finished.
        history: of the job.
    """
    return not (supervisor.told_to_end or supervisor.survivors or history.refusal)


def failure_for_all(supervisor: Supervisor, policies: Sequence[RestartPolicy]) -> WorkerFailure | None:
    """Return the failure after which all workers are started again; None if no worker failed, or the policies forbid it.

    The worker whose failure caused the others' decides; if its policy is not ``all``, those that failed because of it.

    Args:
        supervisor: of the round, finished.
        policies: of the workers, in order of rank.
    """
    if (cause := supervisor.cause) is None:
        return None
    failed = {policies[worker.rank] for worker in supervisor.failures.failed()}
    consequences = RestartPolicy.ALL in failed and RestartPolicy.NEVER not in failed
    if policies[cause.rank] is not RestartPolicy.ALL and not consequences:
        return None
    worker = supervisor.failures.worker(cause.rank)
    return WorkerFailure(
        cause.rank, cause.code, worker.error, worker.lost, supervisor.restarts.ran(cause.rank, cause.at)
    )
