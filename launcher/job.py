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

RUNS = Path("telegrad_runs")


@dataclass(frozen=True)
class WorkerResult:
    """How a worker ended.

    ``code`` is its exit code, or minus the number of the signal that killed it, or ``None`` if not even KILL ended
    it. ``ours`` says that the launcher sent that signal. ``after`` is in seconds from the job's start.
    ``traceback`` is that of the exception that ended its program, if it reported one; ``lost`` names the workers whose
    loss caused that; ``ended_early`` says that it joined the job and ended without ``rpc.shutdown``.
    """

    name: str
    rank: int
    code: int | None
    ours: bool
    after: float
    log: Path
    traceback: str = ""
    lost: tuple[str, ...] = ()
    ended_early: bool = False


@dataclass(frozen=True)
class JobResult:
    """How a job ended.

    ``exit_code`` is the cause's exit code, 128 + the number if that was a signal, 1 if it has none of its own, and 0 if
    all workers succeeded.
    ``cause`` is the worker whose failure caused the others', ``interrupted_by`` the signal by which the user ended the job.
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
    workers = tuple(_result(engine, rank, log_dir / f"{name}.log", began) for rank, name in enumerate(spec.workers))
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


def _result(engine: LocalEngine, rank: int, log: Path, began: float) -> WorkerResult:
    supervisor, names = engine.supervisor, engine.spec.workers
    death = next((death for death in supervisor.deaths if death.rank == rank), None)
    return WorkerResult(
        names[rank],
        rank,
        code=death.code if death else None,
        ours=death.ours if death else False,
        after=(death.at if death else time.monotonic()) - began,
        log=log,
        traceback=engine.reports.tracebacks.get(rank, "") if supervisor.blame.raised(rank) else "",
        lost=tuple(names[other] for other in supervisor.blame.lost_by(rank)),
        ended_early=supervisor.blame.ended_early(rank),
    )
