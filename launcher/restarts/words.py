"""Words on restarts: the line of the console, and that of the summary."""

from collections.abc import Sequence

from ..exit_words import describe_exit
from ..progress import counted, listed
from .history import PastRestart, WorkerFailure


def restart_line(restart: PastRestart, workers: Sequence[str], reason: str = "") -> str:
    """Return what the user reads when workers are about to be started again.

    Args:
        restart: the restart.
        workers: names, in order of rank.
        reason: of the restart; empty for the worker's failure.
    """
    failed, others = workers[restart.failure.rank], [workers[r] for r in restart.ranks if r != restart.failure.rank]
    when = f"{f'in {restart.delay:.1f} s' if restart.delay else 'at once'} (restart {restart.number})"
    why = reason or f"{failed} {_reason(restart.failure)}"
    if len(restart.ranks) == len(workers) > 1:
        return f"all {counted(len(workers))} are started again {when}: {why}"
    return f"{why}; it is started again {when}" + (f", and with it {listed(others)}" if others else "")


def past_line(restart: PastRestart, workers: Sequence[str], began: float, reason: str = "") -> str:
    """Return what the summary says of a restart.

    Args:
        restart: the restart.
        workers: names, in order of rank.
        began: monotonic seconds at which the job began.
        reason: of the restart; empty for the worker's failure.
    """
    everyone = len(restart.ranks) == len(workers) > 1
    who = f"all {counted(len(workers))}" if everyone else listed([workers[rank] for rank in restart.ranks])
    why = reason or f"{workers[restart.failure.rank]} {_reason(restart.failure)}"
    return f"{who} after {restart.at - began:.1f} s: {why}"


def _reason(failure: WorkerFailure) -> str:
    how = describe_exit(failure.code).partition(":")[0]
    return f"{how} ({failure.error[:200]})" if failure.error else how
