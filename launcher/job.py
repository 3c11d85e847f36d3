"""Running of a job from its spec to its result, in one round or in several: after one, all workers may be started again."""

import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TextIO

from .console import WorkerConsole
from .engines.ending_signals import ending_signals
from .engines.scripts import ScriptEngine
from .engines.starter import WorkerStarter
from .errors import LogDirError
from .nodes.part import JobPart
from .progress import Progress, counted, listed
from .restarts.history import RestartHistory
from .restarts.words import restart_line
from .result import JobResult, result_of
from .spec import JobSpec, check_roles

RUNS = Path("telegrad_runs")
Tell = Callable[[str], None]


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
        check_roles(spec.restarts, spec.workers)
    began = time.monotonic()
    history = history or RestartHistory(spec.restarts, len(spec.workers))
    log_dir = make_log_dir(spec)
    tell = tell or (lambda _: None)
    tell(f"starts {counted(len(spec.workers))}: {listed(spec.workers)}; logs: {log_dir}/")
    with ExitStack() as stack:
        signals = stack.enter_context(ending_signals())
        console, told = stack.enter_context(_console(spec, stream or sys.stdout, log_dir, tell))
        processes = starter or stack.enter_context(closing(WorkerStarter(spec, told)))
        while True:
            progress = Progress(len(spec.workers), told, time.monotonic())
            engine = ScriptEngine(spec, log_dir, console, progress, history, processes, node)
            engine.run_to_the_end(signals)
            restart = engine.supervisor.begin_again(time.monotonic()) if node is None else None  # else the host decides
            if restart is None:
                return result_of(engine, began, None)
            told(restart_line(restart, spec.workers))
            if (signum := signals.wait(restart.delay)) is not None:
                told(f"interrupted by {signal.Signals(signum).name} before the workers were started again")
                return result_of(engine, began, signum)


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
