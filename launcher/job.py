"""Running of a job from its spec to its result, in one round or in several: after one, all workers may be started again."""

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

from ..base.job_credentials import LAUNCHER, LEAVE
from .console import WorkerConsole
from .elastic import LauncherSocket, Scaling
from .engines.ending_signals import EndingSignals, ending_signals
from .engines.engine import Engine
from .engines.log import make_log_dir
from .engines.scripts import ScriptWorkers
from .engines.starter import WorkerStarter
from .environment import WorkerPlace
from .events import Abandoned, Added, Interrupted
from .nodes.part import JobPart
from .progress import Progress, counted, listed
from .restarts.history import RestartHistory
from .restarts.words import past_line, restart_line
from .restarts.workers import WorkerRestarts
from .result import JobResult, WorkerResult
from .spec import JobSpec, check_roles
from .supervisor import SETTLE_SECONDS, UNKILLABLE_SECONDS, Supervisor

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
        console, told = stack.enter_context(_console(spec, log_dir, stream or sys.stdout, tell))
        processes = starter or stack.enter_context(closing(WorkerStarter(spec, told)))
        while True:
            progress = Progress(len(spec.workers), told, time.monotonic())
            last = JobRound(spec, log_dir, console, progress, history, processes, node)
            last.run(signals)
            restart = last.supervisor.begin_again(time.monotonic()) if node is None else None  # else the host decides
            if restart is None:
                return last.result(began)
            told(restart_line(restart, spec.workers))
            if (signum := signals.wait(restart.delay)) is not None:
                told(f"interrupted by {signal.Signals(signum).name} before the workers were started again")
                return last.result(began, signum)


class JobRound:
    """Round of a job: its workers from their start to their end, and all that ends with them.

    Args:
        spec: the job.
        log_dir: existing folder that receives ``<worker>.log`` of each worker.
        console: shows the workers' output.
        progress: tells how far the start is, and that a silent job runs.
        history: of the job's restarts; rounds before this one are in it.
        starter: of the job's processes.
        node: part of a job on several machines; None if this launcher runs all of it.

    Attributes:
        supervisor: decides what is done.
        workers: do it.
        engine: has them do it.
    """

    def __init__(
        self,
        spec: JobSpec,
        log_dir: Path,
        console: WorkerConsole,
        progress: Progress,
        history: RestartHistory,
        starter: WorkerStarter,
        node: JobPart | None = None,
    ) -> None:
        alone = node is None
        restarts = WorkerRestarts(spec.policies, history, SETTLE_SECONDS, spec.grace, UNKILLABLE_SECONDS, alone)
        self.supervisor = Supervisor(len(spec.workers), spec.grace, restarts)
        self._log_dir = log_dir
        self._resources = ExitStack()
        self._selector = self._resources.enter_context(selectors.DefaultSelector())
        self._place = self._resources.enter_context(
            closing(WorkerPlace(spec, log_dir, history, starter.environment, starter.reports, node))
        )
        self.workers = self._resources.enter_context(
            closing(ScriptWorkers(spec, self._place, self.supervisor, console, progress, starter, self._selector))
        )
        self.engine = self._resources.enter_context(closing(Engine(self.supervisor, self.workers, self._selector)))
        self._progress = progress
        self._starter = starter
        console.on_closed = lambda: self._interrupt(signal.SIGPIPE)  # end as other programs in a pipeline do
        if node:
            self._selector.register(node.wake, selectors.EVENT_READ, partial(self._abandon, node))

    @property
    def spec(self) -> JobSpec:
        """The job; with the workers that have been added."""
        return self.workers.spec

    def run(self, signals: EndingSignals) -> None:
        """Run the workers, end what they leave running, and free all resources.

        Args:
            signals: by which the user ends the job.

        Raises:
            LogDirError: a log cannot be written.
        """
        folder = self._place.credentials.root
        with self._resources as stack:
            stack.enter_context(signals.to(self._selector, self._interrupt))
            stack.enter_context(self._starter.in_round(self._selector, folder))
            if self.workers.spec.elastic:
                commands = LauncherSocket(folder / LAUNCHER, self._selector, Scaling(self).answer)
                stack.enter_context(closing(commands))
            self.engine.begin()
            self.engine.run()

    def add(self, name: str) -> None:
        """Start one more worker, or a new one in the place of one that has ended well.

        Raises:
            ValueError: there are too many.
        """
        if name not in self.spec.workers:
            self.workers.add(name)
        rank = self.spec.workers.index(name)
        self.engine.post(Added(rank, self.spec.policies[rank]))

    def ask_to_leave(self, name: str) -> None:
        """Ask a worker to end between two steps; started again before it has left, it is asked no more."""
        self._place.credentials.mark(name, LEAVE)

    def tell(self, line: str) -> None:
        """Tell the user of a change of the workers."""
        self._progress.tell(line)

    def result(self, began: float, interrupted_by: int | None = None) -> JobResult:
        """Return the result of the job, if this was its last round.

        Args:
            began: monotonic seconds of the job's start.
            interrupted_by: number of the signal that came before a further round; None if none did.
        """
        supervisor, history, names = self.supervisor, self.supervisor.restarts.history, self.workers.spec.workers
        workers = tuple(self._worker_result(rank, name, began) for rank, name in enumerate(names))
        cause = supervisor.cause if interrupted_by is None else None
        return JobResult(
            exit_code=supervisor.exit_code if interrupted_by is None else 128 + interrupted_by,
            cause=workers[cause.rank] if cause else None,
            interrupted_by=supervisor.interrupted_by if interrupted_by is None else interrupted_by,
            workers=workers,
            log_dir=self._log_dir,
            seconds=time.monotonic() - began,
            left_running=tuple(self._starter.left_running),
            ended_because=supervisor.abandoned,
            restarts=tuple(past_line(restart, names, began) for restart in history.restarts),
            no_restart=history.refusal if cause else "",
            failure=supervisor.failure_for_all,
            may_begin_again=supervisor.may_begin_again,
        )

    def _worker_result(self, rank: int, name: str, began: float) -> WorkerResult:
        failures = self.supervisor.failures
        worker = failures.worker(rank)
        end = worker.exit
        return WorkerResult(
            name,
            self._place.first_rank + rank,
            code=end.code if end else None,
            ended_by_launcher=end.by_launcher if end else False,
            after=(end.at if end else time.monotonic()) - began,
            log=self._place.log(name),
            traceback=self.workers.reports.tracebacks.get(rank, "") if worker.raised else "",
            lost=tuple(failures.launched_name(name, self.workers.spec.workers) for name in worker.lost),
            ended_early=worker.ended_early,
            last_events=self.engine.last_events.get(rank, ()),
            last_trace=self.workers.last_traces.get(rank),
            restarts=self.supervisor.restarts.history.counts[rank],
        )

    def _interrupt(self, signum: int) -> None:
        self.engine.post(Interrupted(signum))

    def _abandon(self, node: JobPart) -> None:
        self._selector.unregister(node.wake)
        self.engine.post(Abandoned(node.ended_because))


@contextmanager
def _console(spec: JobSpec, log_dir: Path, stream: TextIO, tell: Tell) -> Iterator[tuple[WorkerConsole, Tell]]:
    """Yield the console, and a function that tells a line: with a live view, if ``stream`` is a terminal that can show it."""
    if spec.plain or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield WorkerConsole(spec.workers, stream), tell
        return
    from .live.console import LiveConsole  # where output is no terminal, nothing of it is loaded
    from .live.watcher import JobWatcher

    logs = [os.path.abspath(log_dir / f"{name}.log") for name in spec.workers]
    with closing(JobWatcher(logs)) as watcher, closing(LiveConsole(spec.workers, stream, watcher.rows)) as console:
        yield console, lambda line: console.tell(partial(tell, line))
