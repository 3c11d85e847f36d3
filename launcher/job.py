"""Running of a job from its spec to its result, in one round or in several: after one, all workers may be started again."""

import selectors
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TextIO

from ..core.job_credentials import LAUNCHER, LEAVE
from .console import WorkerConsole, job_console
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
from .restarts.words import restart_line
from .restarts.workers import WorkerRestarts
from .result import JobResult, result_of
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
        console, told = stack.enter_context(job_console(spec.workers, log_dir, stream or sys.stdout, spec.plain, tell))
        processes = starter or stack.enter_context(closing(WorkerStarter(spec, told)))
        while True:
            progress = Progress(len(spec.workers), told, time.monotonic())
            last = JobRound(spec, log_dir, console, progress, history, processes, node)
            last.run(signals)
            restart = last.supervisor.begin_again(time.monotonic()) if node is None else None  # else the host decides
            if restart is None:
                return result_of(last, began, None)
            told(restart_line(restart, spec.workers))
            if (signum := signals.wait(restart.delay)) is not None:
                told(f"interrupted by {signal.Signals(signum).name} before the workers were started again")
                return result_of(last, began, signum)


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
        log_dir: as given.
        supervisor: decides what is done.
        workers: do it.
        engine: has them do it.
        starter: as given.
        first_rank: rank in the job of the first worker.
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
        self.log_dir = log_dir
        self._resources = ExitStack()
        self._selector = self._resources.enter_context(selectors.DefaultSelector())
        self._place = self._resources.enter_context(
            closing(WorkerPlace(spec, log_dir, history, starter.environment, starter.reports, node))
        )
        self.first_rank = self._place.first_rank
        self.workers = self._resources.enter_context(
            closing(ScriptWorkers(spec, self._place, self.supervisor, console, progress, starter, self._selector))
        )
        self.engine = self._resources.enter_context(closing(Engine(self.supervisor, self.workers, self._selector)))
        self._progress = progress
        self.starter = starter
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
            stack.enter_context(self.starter.in_round(self._selector, folder))
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

    def _interrupt(self, signum: int) -> None:
        self.engine.post(Interrupted(signum))

    def _abandon(self, node: JobPart) -> None:
        self._selector.unregister(node.wake)
        self.engine.post(Abandoned(node.ended_because))
