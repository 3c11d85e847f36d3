"""``telegrad ps``: the jobs of this user on this machine, and their workers. It asks no worker."""

import json
import time
from dataclasses import asdict
from typing import Any

from ...base.processes import process_status
from .jobs import LocalJob, LocalWorker, choose_job, find_jobs
from .texts import columns, duration, size

PS_COLUMNS = ("JOB", "WORKER", "RANK", "PID", "STATE", "RESTARTS", "MEMORY", "TIME", "PROGRAM", "FOLDER")
PS_RIGHT = (2, 3, 5, 6, 7)


def show_jobs(key: str | None, as_json: bool) -> None:
    """Print the workers of all jobs, or of one.

    Args:
        key: the beginning of a job's id; None for all.
        as_json: print one JSON object.

    Raises:
        NoJobError: there is no such job.
    """
    jobs = find_jobs() if key is None else [choose_job(key)]
    if as_json:
        print(json.dumps({"jobs": [_table(job) for job in jobs]}, indent=2))
    elif not jobs:
        print("no job of yours runs on this machine")
    else:
        print(columns([PS_COLUMNS, *(_row(job, worker) for job in jobs for worker in job.workers)], PS_RIGHT))


def state_of(worker: LocalWorker) -> str:
    """Return a worker's state in a word or two: "joining", or that of its process."""
    status = process_status(worker.record.process_id)
    state = "ended" if status is None else status.state
    return "joining" if state in ("running", "sleeping") and not worker.record.joined else state


def _row(job: LocalJob, worker: LocalWorker) -> tuple[object, ...]:
    record, status = worker.record, process_status(worker.record.process_id)
    memory = size(status.memory_bytes if status else None)
    age = duration(time.time() - record.began)
    return (
        job.key,
        record.worker,
        record.rank,
        record.process_id,
        state_of(worker),
        record.restarts,
        memory,
        age,
        record.program,
        record.folder,
    )


def _table(job: LocalJob) -> dict[str, Any]:
    return {"job": job.key, "workers": [asdict(each.record) | {"state": state_of(each)} for each in job.workers]}
