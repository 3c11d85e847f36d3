"""``telegrad why``: why a job waits, concluded from the observations of all its workers."""

from collections.abc import Sequence

from ...rpc.observing import explain
from .jobs import choose_job
from .observing import check_names, observe_job


def show_causes(names: Sequence[str], key: str | None, timeout: float, as_json: bool) -> None:
    """Print why a job waits. A worker that does not answer is part of the explanation.

    Args:
        names: only what concerns these workers, or keeps them waiting; all, if there are none.
        key: the beginning of the job's id; None for the latest of this folder.
        timeout: seconds that a worker has to answer.
        as_json: print one JSON object.

    Raises:
        NoJobError: there is no such job or worker.
    """
    job = choose_job(key)
    seen = observe_job(job, timeout)
    check_names(job, names, seen)
    found = explain(seen, names)
    print(found.json() if as_json else found.text())
