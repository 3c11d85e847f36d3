"""Restart of all workers of a job: the policy ``all``. The job ends, and begins anew in a further round."""

from collections.abc import Sequence

from ..supervisor import Supervisor
from .history import PastRestart, RestartHistory, WorkerFailure
from .rules import RestartPolicy


def restart_of_all(
    supervisor: Supervisor, policies: Sequence[RestartPolicy], history: RestartHistory, now: float
) -> PastRestart | None:
    """Return the restart that follows a round of a job; None if the job is over.

    The worker whose failure caused the others' decides; if its policy is not ``all``, that of those that failed because of it.

    Args:
        supervisor: of the round, finished.
        policies: of the workers, in order of rank.
        history: of the job; a restart is counted there.
        now: monotonic seconds.
    """
    cause = supervisor.cause
    if cause is None or supervisor.told_to_end or supervisor.survivors or history.refusal:
        return None
    failed = {policies[worker.rank] for worker in supervisor.failures.failed()}
    consequences = RestartPolicy.ALL in failed and RestartPolicy.NEVER not in failed
    if policies[cause.rank] is not RestartPolicy.ALL and not consequences:
        return None
    worker = supervisor.failures.worker(cause.rank)
    ran = supervisor.restarts.ran(cause.rank, cause.at)
    failure = WorkerFailure(cause.rank, cause.code, worker.error, worker.lost, ran)
    restart = history.decide(failure, tuple(range(len(policies))), now)
    if restart is not None:
        history.rounds += 1
        history.counts.update(restart.ranks)
    return restart
