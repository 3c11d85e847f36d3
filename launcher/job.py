"""Running of a job from its spec to its result."""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TextIO

from .console import WorkerConsole
from .engines.ending_signals import ending_signals
from .engines.scripts import ScriptEngine
from .engines.starter import WorkerStarter
from .errors import LogDirError
from .nodes.outcome import Outcome
from .nodes.part import JobPart
from .progress import Progress, counted, listed
from .restarts.everyone import failure_for_all, may_begin_again
from .restarts.history import RestartHistory, WorkerFailure
from .restarts.words import past_line
from .rounds import run_rounds
from .spec import JobSpec, role_of

RUNS = Path("telegrad_runs")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class WorkerResult:
    """End of one worker.

    Args:
        name: the worker's name.
        rank: its rank.
        code: its exit code; minus the number of the signal that killed it; None if it survived even KILL.
        ended_by_launcher: the launcher sent that signal.
        after: seconds from the job's start to the worker's end.
        log: file with the worker's output.
        traceback: of the exception that ended its program, if it reported one.
        lost: names of the workers whose loss caused that exception.
        ended_early: it joined the job and ended without ``rpc.shutdown``.
        last_trace: trace of the calls that it served last, if it failed and had served one.
        restarts: how often it was started again; the other attributes are of its last process.
        last_events: what it noted before its end (joined, lost, left; what it logged, its loops), in words, the latest last.
    """

    name: str
    rank: int
    code: int | None
    ended_by_launcher: bool
    after: float
    log: Path
    traceback: str = ""
    lost: tuple[str, ...] = ()
    ended_early: bool = False
    last_events: tuple[str, ...] = ()
    last_trace: Path | None = None
    restarts: int = 0


@dataclass(frozen=True)
class JobResult:
    """End of a job.

    Args:
        exit_code: 0 if all workers succeeded; else the cause's exit code, 128 + the number if that was a signal, 1 if it has
            none of its own.
        cause: the worker whose failure caused the others', if any failed.
        interrupted_by: number of the signal by which the user ended the job.
        workers: ends of all workers, in order of rank.
        log_dir: folder of the logs.
        seconds: from the job's start to its end.
        left_running: process ids of what the workers had left running; they have been ended.
        verdict: of a job on several nodes: number of the node that failed first, and how; None if none did.
        ended_because: why it was ended, if not because of a worker of this machine.
        restarts: restarts of workers, in words, in order.
        failure: after which the policies start all workers again; None if there is none.
        may_begin_again: nothing forbids to start all workers again.
        no_restart: why the cause was not followed by a restart, although its policy says so; empty if there was none.
    """

    exit_code: int
    cause: WorkerResult | None
    interrupted_by: int | None
    workers: tuple[WorkerResult, ...]
    log_dir: Path
    seconds: float
    left_running: tuple[int, ...]
    verdict: tuple[int, Outcome] | None = None
    ended_because: str = ""
    restarts: tuple[str, ...] = ()
    no_restart: str = ""
    failure: WorkerFailure | None = None
    may_begin_again: bool = False


def launch(
    spec: JobSpec,
    stream: TextIO | None = None,
    node: JobPart | None = None,
    tell: Callable[[str], None] | None = None,
    history: RestartHistory | None = None,
    starter: WorkerStarter | None = None,
) -> JobResult:
    """Run a job and show its workers' output; return when all its processes have ended.

    A worker that fails ends the others, or is started again, as ``spec.restarts`` says. Called in the main thread, it also
    takes SIGINT, SIGTERM and SIGHUP while the job runs, and ends the workers with it.

    Args:
        spec: the job.
        stream: where output is shown; None means standard output.
        node: part of a job on several machines that ``spec`` is; None if it is the whole job.
        tell: called with each line about the job's start, and every minute in which no worker writes; None tells nothing.
        history: of restarts, if this is a round of a job on several machines; None for a new job.
        starter: of its processes, if this is a round of a job on several machines; None makes one.

    Raises:
        LogDirError: the logs cannot be written.
        ValueError: ``spec.restarts`` names a role that the job does not have.
    """
    if node is None:
        spec.restarts.check_roles({role_of(worker) for worker in spec.workers})
    began = time.monotonic()
    log_dir = make_log_dir(spec)
    tell = tell or (lambda _: None)
    tell(f"starts {counted(len(spec.workers))}: {listed(spec.workers)}; logs: {log_dir}/")
    history = history or RestartHistory(spec.restarts, len(spec.workers))
    with ExitStack() as stack:
        signals = stack.enter_context(ending_signals())
        console, told = stack.enter_context(_console(spec, stream or sys.stdout, log_dir, tell))
        processes = starter or stack.enter_context(closing(WorkerStarter(spec, told)))

        def new_engine() -> ScriptEngine:
            progress = Progress(len(spec.workers), told, time.monotonic())
            return ScriptEngine(spec, log_dir, console, progress, history, processes, node)

        engine, interrupted_by = run_rounds(new_engine, history, signals, told, alone=node is None)
    first_rank = node.placement.first_rank if node else 0
    workers = tuple(
        _result(engine, rank, first_rank, name, log_dir, began) for rank, name in enumerate(engine.spec.workers)
    )
    supervisor, spec = engine.supervisor, engine.spec  # an elastic job may have other workers than at its start
    cause = supervisor.cause if interrupted_by is None else None
    return JobResult(
        exit_code=supervisor.exit_code if interrupted_by is None else 128 + interrupted_by,
        cause=workers[cause.rank] if cause else None,
        interrupted_by=supervisor.interrupted_by if interrupted_by is None else interrupted_by,
        workers=workers,
        log_dir=log_dir,
        seconds=time.monotonic() - began,
        left_running=tuple(engine.left_running),
        ended_because=supervisor.abandoned,
        restarts=tuple(past_line(restart, spec.workers, began) for restart in history.restarts),
        no_restart=history.refusal if cause else "",
        failure=failure_for_all(supervisor, spec.policies),
        may_begin_again=may_begin_again(supervisor, history),
    )


@contextmanager
def _console(spec: JobSpec, stream: TextIO, log_dir: Path, tell: Tell) -> Iterator[tuple[WorkerConsole, Tell]]:
    """Yield the console, and a function that tells a line: with a live view, if ``stream`` is a terminal that can show it."""
    if spec.plain or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield WorkerConsole(spec.workers, stream), tell
        return
    from .live.console import LiveConsole  # where output is no terminal, nothing of it is loaded
    from .live.watcher import JobWatcher

    logs = [os.path.abspath(log_dir / f"{name}.log") for name in spec.workers]
    with closing(JobWatcher(logs)) as watcher, closing(LiveConsole(spec.workers, stream, watcher.rows)) as console:
        yield console, lambda line: console.tell(partial(tell, line))


def log_folder(spec: JobSpec) -> Path:
    """Return the folder for a job's logs: the user's, or one with the time in its name."""
    return spec.log_dir or RUNS / f"{datetime.now():%Y-%m-%d-%H%M%S}-{spec.title}"


def make_log_dir(spec: JobSpec) -> Path:
    """Make the folder for a job's logs, and return it.

    Raises:
        LogDirError: it cannot be made.
    """
    log_dir = log_folder(spec)
    try:
        if spec.log_dir is None:
            return _make_new(log_dir)
        log_dir.mkdir(parents=True, exist_ok=True)
        return log_dir
    except OSError as error:
        raise LogDirError(f"the folder {str(log_dir)!r} for the logs cannot be made: {error.strerror}") from error


def _make_new(folder: Path) -> Path:
    """Make the folder, or one with a number after its name where jobs began in the same second."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for name in (folder.name, *(f"{folder.name}-{i}" for i in range(2, 1000))):
        with suppress(FileExistsError):
            folder.with_name(name).mkdir()
            return folder.with_name(name)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def _result(engine: ScriptEngine, rank: int, first_rank: int, name: str, log_dir: Path, began: float) -> WorkerResult:
    supervisor = engine.supervisor
    failures = supervisor.failures
    worker = failures.worker(rank)
    end = worker.exit
    return WorkerResult(
        name,
        first_rank + rank,
        code=end.code if end else None,
        ended_by_launcher=end.by_launcher if end else False,
        after=(end.at if end else time.monotonic()) - began,
        log=log_dir / f"{name}.log",
        traceback=engine.reports.tracebacks.get(rank, "") if worker.raised else "",
        lost=tuple(failures.launched_name(name, engine.spec.workers) for name in worker.lost),
        ended_early=worker.ended_early,
        last_events=engine.last_events.get(rank, ()),
        last_trace=engine.last_traces.get(rank),
        restarts=supervisor.restarts.history.counts[rank],
    )
