"""Runs a job from its spec to its result."""

import errno
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

from .console import WorkerConsole
from .engines.local import LocalEngine
from .errors import LogDirError
from .spec import JobSpec
from .supervisor import Death, Supervisor

RUNS = Path("telegrad_runs")


@dataclass(frozen=True)
class WorkerResult:
    """How a worker ended.

    ``code`` is its exit code, or minus the number of the signal that killed it, or ``None`` if not even KILL ended
    it. ``ours`` says that the launcher sent that signal. ``after`` is in seconds from the job's start.
    """

    name: str
    rank: int
    code: int | None
    ours: bool
    after: float
    log: Path


@dataclass(frozen=True)
class JobResult:
    """How a job ended.

    ``exit_code`` is the cause's exit code, 128 + the number if that was a signal, and 0 if all workers succeeded.
    ``cause`` is the worker that failed first, ``interrupted_by`` the signal by which the user ended the job.
    ``workers`` are in order of rank. ``left_running`` are the processes that workers had left behind; they have been
    ended.
    """

    exit_code: int
    cause: WorkerResult | None
    interrupted_by: int | None
    workers: tuple[WorkerResult, ...]
    log_dir: Path
    seconds: float
    left_running: tuple[int, ...]


def launch(spec: JobSpec, stream: TextIO | None = None) -> JobResult:
    """Runs the job, showing its workers' output on ``stream`` (``None``: standard output); returns when all is over.

    A worker that fails ends the others. Called in the main thread, it also takes SIGINT, SIGTERM and SIGHUP while the
    job runs, and ends the workers with it. Raises ``LogDirError`` if the logs have no place.
    """
    began = time.monotonic()
    log_dir = _make_log_dir(spec)
    engine = LocalEngine(spec, log_dir, WorkerConsole(spec.workers, stream))
    supervisor = engine.run()
    workers = _results(spec, supervisor, log_dir, began)
    return JobResult(
        exit_code=supervisor.exit_code,
        cause=workers[supervisor.cause.rank] if supervisor.cause else None,
        interrupted_by=supervisor.interrupted_by,
        workers=workers,
        log_dir=log_dir,
        seconds=time.monotonic() - began,
        left_running=tuple(engine.left_running),
    )


def _make_log_dir(spec: JobSpec) -> Path:
    log_dir = spec.log_dir or RUNS / f"{datetime.now():%Y-%m-%d-%H%M%S}-{spec.title}"
    try:
        if spec.log_dir is None:
            return _make_new(log_dir)
        log_dir.mkdir(parents=True, exist_ok=True)
        return log_dir
    except OSError as error:
        raise LogDirError(f"the folder {str(log_dir)!r} for the logs cannot be made: {error.strerror}") from error


def _make_new(folder: Path) -> Path:
    """Makes the folder, or one with a number behind where jobs began in the same second."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for name in (folder.name, *(f"{folder.name}-{i}" for i in range(2, 1000))):
        with suppress(FileExistsError):
            folder.with_name(name).mkdir()
            return folder.with_name(name)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def _results(spec: JobSpec, supervisor: Supervisor, log_dir: Path, began: float) -> tuple[WorkerResult, ...]:
    deaths = {death.rank: death for death in supervisor.deaths}
    return tuple(
        _result(name, rank, deaths.get(rank), log_dir / f"{name}.log", began) for rank, name in enumerate(spec.workers)
    )


def _result(name: str, rank: int, death: Death | None, log: Path, began: float) -> WorkerResult:
    if death is None:
        return WorkerResult(name, rank, None, ours=False, after=time.monotonic() - began, log=log)
    return WorkerResult(name, rank, death.code, death.ours, death.at - began, log)
