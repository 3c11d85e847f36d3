"""Observation of a whole job: each worker of this machine is asked at its own socket, all others through one of them.

So a worker is seen also while it waits for a peer, and its answer does not depend on any other. What a worker of this machine
does not say is looked for in its process: its state, and its stacks at a signal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ...core.extend import abridged
from ...core.printable import printable
from ...core.processes import process_status
from ...rpc.observing import (
    OTHERS,
    SELF,
    CommandMember,
    CommandRequest,
    Observation,
    ProcessLook,
    look_at_process,
    state_between,
)
from .asking import LATER_SECONDS, LateError, NoAnswerError, ask
from .dumps import dumped_threads
from .jobs import LocalJob, LocalWorker, NoJobError, check_readable

MOST_AT_A_TIME = 16
STOPPED_ANSWER_SECONDS = 0.3  # for a worker whose process is stopped


@dataclass(frozen=True, slots=True)
class _Seen:
    observation: Observation
    members: list[CommandMember]


def observe_job(job: LocalJob, timeout: float = 2.0, names: Sequence[str] = ()) -> list[Observation]:
    """Return the observations of a job's workers, in order of rank.

    Args:
        job: the job.
        timeout: seconds that each worker has to answer.
        names: the workers that are wanted; all, if there are none.

    Raises:
        NoJobError: the job has no such worker, or runs another version.
    """
    check_readable(job.workers)
    with ThreadPoolExecutor(MOST_AT_A_TIME) as pool:
        local = list(pool.map(lambda worker: _observe(worker, timeout), job.workers))
    members = next((each.members for each in local if each.members), [])
    found = [each.observation for each in local]
    numbers = {each.name: each.number for each in members}
    found = [replace(each, number=numbers.get(each.worker, each.number)) for each in found]
    found += _others(job, members, found, timeout)
    check_names(job, names, found)
    wanted = [_with_views(each, found) if each.error else each for each in found if not names or each.worker in names]
    return sorted(wanted, key=lambda each: (each.rank, each.worker))


def check_names(job: LocalJob, names: Sequence[str], seen: Sequence[Observation]) -> None:
    """Refuse the name of a worker that the job does not have.

    Args:
        job: the job.
        names: the names that were given.
        seen: the observations of all its workers.

    Raises:
        NoJobError: one is.
    """
    known = sorted({each.worker for each in seen})
    if missing := sorted(set(names) - set(known)):
        raise NoJobError(
            f"job {printable(job.key)} has no worker {printable(missing[0])!r}; it has {printable(abridged(known, 20))}"
        )


def _observe(worker: LocalWorker, timeout: float) -> _Seen:
    record, before, began = worker.record, look_at_process(worker.record.process_id), time.monotonic()
    try:
        request = CommandRequest(SELF, timeout=timeout)
        answer, (seen,) = ask(worker, request, min(timeout, STOPPED_ANSWER_SECONDS) if before.stopped else timeout)
    except (NoAnswerError, ValueError) as error:
        return _Seen(_silent(worker, error, before), [])
    # Its name and process are those of its record, which the socket has proven: an answer does not choose them.
    seen = replace(seen, worker=record.worker, process_id=record.process_id, host=record.host)
    return _Seen(replace(seen, answer_seconds=time.monotonic() - began), answer.members)


def _silent(worker: LocalWorker, error: Exception, before: ProcessLook) -> Observation:
    record, status = worker.record, process_status(worker.record.process_id)
    silent = Observation(
        record.worker, record.rank, record.rank, str(error), host=record.host, process_id=record.process_id
    )
    if status is None or not record.runs:
        return replace(silent, process_state="gone")
    silent = replace(silent, memory_bytes=status.memory_bytes, cpu_seconds=status.cpu_seconds)
    if not isinstance(error, LateError) and status.state != "stopped":
        return silent  # it refused, or said something else: the state of its process is not the reason
    state = state_between(before, look_at_process(record.process_id))
    return replace(silent, process_state=state, threads=[] if state == "stopped" else dumped_threads(worker))


def _others(
    job: LocalJob, members: Sequence[CommandMember], found: Sequence[Observation], timeout: float
) -> list[Observation]:
    """Return the observations of the workers that do not run here, from the first worker here that asks them."""
    here = {each.worker for each in found}
    names = [each.name for each in members if each.name not in here]
    if not names:
        return []
    why = "no worker of this machine answers"
    for worker in job.workers:
        try:
            request = CommandRequest(OTHERS, names, timeout)
            return ask(worker, request, timeout + LATER_SECONDS)[1]
        except NoAnswerError as error:
            why = f"worker {worker.record.worker!r} could not ask it: {error}"
    return [Observation(each.name, each.number, each.rank, why) for each in members if each.name in names]


def _with_views(silent: Observation, found: Sequence[Observation]) -> Observation:
    views = {each.worker: link.state for each in found for link in each.links if link.to == silent.worker}
    return replace(silent, seen_by=views)
