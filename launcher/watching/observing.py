"""Observation of a whole job: each worker of this machine is asked at its own socket, all others through one of them.

So a worker is seen also while it waits for a peer, and its answer does not depend on any other. What a worker of this machine
does not say is looked for in its process: its state, and its stacks at a signal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import replace

from ...base.printable import printable
from ...base.processes import process_status
from ...base.words import abridged
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
from .answers import NoAnswerError, WorkerAnswer
from .asking import LATER_SECONDS, Asker, LateError
from .dumps import dumped_threads
from .jobs import LocalJob, LocalWorker, NoJobError, check_readable

MOST_AT_A_TIME = 16
STOPPED_ANSWER_SECONDS = 0.3  # for a worker whose process is stopped


def observe_job(
    job: LocalJob,
    timeout: float = 2.0,
    names: Collection[str] = (),
    parts: Sequence[str] | None = None,
    asker: Asker | None = None,
) -> list[Observation]:
    """Return the observations of a job's workers, in order of rank.

    Args:
        job: the job.
        timeout: seconds that each worker has to answer.
        names: the workers that are wanted; all, if there are none.
        parts: the lists of an observation that are wanted, as for ``rpc.observe``; None for all.
        asker: it keeps its connections for the next look.

    Raises:
        NoJobError: the job has no such worker, or runs another version.
    """
    check_readable(job.workers)
    with closing(Asker()) if asker is None else nullcontext(asker) as used:
        look = _JobLook(job, timeout, None if parts is None else list(parts), used)
        found = look.here(names)
        if look.needs_members(names, found):
            found = look.with_others(names, found)
    check_names(job, names, found)
    found = [_with_views(each, found) if each.error else each for each in found]
    return sorted(found, key=lambda each: (each.rank, each.worker))


def check_names(job: LocalJob, names: Collection[str], seen: Sequence[Observation]) -> None:
    """Refuse the name of a worker that the job does not have.

    Args:
        job: the job.
        names: the names that were given.
        seen: the observations of the workers that do not run here, at least.

    Raises:
        NoJobError: one is.
    """
    known = sorted({each.worker for each in seen} | {each.record.worker for each in job.workers})
    if missing := sorted(set(names) - set(known)):
        raise NoJobError(
            f"job {printable(job.key)} has no worker {printable(missing[0])!r}; it has {printable(abridged(known, 20))}"
        )


class _JobLook:
    """One look at a job.

    Args:
        job, timeout, parts, asker: as for ``observe_job``.
    """

    def __init__(self, job: LocalJob, timeout: float, parts: list[str] | None, asker: Asker) -> None:
        self._job = job
        self._timeout = timeout
        self._parts = parts
        self._asker = asker
        self._late: dict[str, ProcessLook] = {}  # by worker, a look at its process while it did not answer

    def here(self, names: Collection[str]) -> list[Observation]:
        """Return the observations of the wanted workers of this machine."""
        workers = [each for each in self._job.workers if not names or each.record.worker in names]
        request = CommandRequest(SELF, timeout=self._timeout, parts=self._parts)
        answers = self._asker.ask(workers, request, self._timeout, self._note_late)
        if not any(isinstance(each, NoAnswerError) for each in answers):
            return list(map(self._observation, workers, answers))
        with ThreadPoolExecutor(MOST_AT_A_TIME) as pool:  # each writes its stacks, which takes a while
            return list(pool.map(self._observation, workers, answers))

    def needs_members(self, names: Collection[str], found: Sequence[Observation]) -> bool:
        """Return whether the names and numbers of all workers of the job must be known, which one of them tells."""
        if any(each.error for each in found):  # its record does not say its number
            return True
        here = {each.record.worker for each in self._job.workers}
        return not here.issuperset(names) if names else len(here) != self._job.workers[0].record.world_size

    def with_others(self, names: Collection[str], found: list[Observation]) -> list[Observation]:
        """Return the observations of this machine's workers, with their numbers, and those of the others.

        They come from the first worker here that answers.
        """
        here, silent = {each.record.worker for each in self._job.workers}, {each.worker for each in found if each.error}
        members: list[CommandMember] = []
        why = "no worker of this machine answers"
        for worker in [each for each in self._job.workers if each.record.worker not in silent]:
            try:
                members = members or self._ask_others(worker, []).first.members
                wanted = [each for each in members if each.name not in here and (not names or each.name in names)]
                others = self._ask_others(worker, [each.name for each in wanted]).observations if wanted else []
                return [*_numbered(found, members), *others]
            except NoAnswerError as error:
                why = f"worker {worker.record.worker!r} could not ask it: {error}"
        others = [Observation(each.name, each.number, each.rank, why) for each in members if each.name not in here]
        return [*_numbered(found, members), *others]

    def _ask_others(self, worker: LocalWorker, names: list[str]) -> WorkerAnswer:
        request = CommandRequest(OTHERS, names, self._timeout, parts=self._parts)
        (answer,) = self._asker.ask([worker], request, self._timeout + LATER_SECONDS)
        if isinstance(answer, NoAnswerError):
            raise answer
        return answer

    def _note_late(self, worker: LocalWorker) -> float:
        look = self._late[worker.record.stem] = look_at_process(worker.record.process_id)
        return min(self._timeout, STOPPED_ANSWER_SECONDS) if look.stopped else self._timeout

    def _observation(self, worker: LocalWorker, answer: WorkerAnswer | NoAnswerError) -> Observation:
        record = worker.record
        if isinstance(answer, NoAnswerError):
            return self._silent(worker, answer)
        if len(answer.observations) != 1:
            return self._silent(worker, NoAnswerError(f"it tells of {len(answer.observations)} workers"))
        # Its name and process are those of its record, which the socket has proven: an answer does not choose them.
        return replace(
            answer.observations[0],
            worker=record.worker,
            process_id=record.process_id,
            host=record.host,
            answer_seconds=answer.seconds,
        )

    def _silent(self, worker: LocalWorker, error: NoAnswerError) -> Observation:
        record, status = worker.record, process_status(worker.record.process_id)
        silent = Observation(
            record.worker, record.rank, record.rank, str(error), host=record.host, process_id=record.process_id
        )
        if status is None or not record.runs:
            return replace(silent, process_state="gone")
        silent = replace(silent, memory_bytes=status.memory_bytes, cpu_seconds=status.cpu_seconds)
        if not isinstance(error, LateError) and status.state != "stopped":
            return silent  # it refused, or said something else: the state of its process is not the reason
        now = look_at_process(record.process_id)
        state = state_between(self._late.get(record.stem, now), now)
        wants_stacks = self._parts is None or "threads" in self._parts
        return replace(
            silent, process_state=state, threads=dumped_threads(worker) if wants_stacks and state != "stopped" else []
        )


def _numbered(found: Sequence[Observation], members: Sequence[CommandMember]) -> list[Observation]:
    numbers = {each.name: each.number for each in members}
    return [replace(each, number=numbers.get(each.worker, each.number)) for each in found]


def _with_views(silent: Observation, found: Sequence[Observation]) -> Observation:
    views = {each.worker: link.state for each in found for link in each.links if link.to == silent.worker}
    return replace(silent, seen_by=views)
