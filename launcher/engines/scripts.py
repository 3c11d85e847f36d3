"""Engine for ``telegrad run``: each worker is a script in a process of its own, forked from one that has imported Telegrad.

Each worker leads a session, so that a terminal's Ctrl-C reaches the launcher only, which passes it on once. A guardian process
outlives the launcher and ends the workers if the launcher is killed.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...core.job_credentials import GIVEN_UP, LAUNCHER, LEAVE
from ...core.job_records import LOG_VARIABLE
from ..console import WorkerConsole
from ..elastic import LauncherSocket, Scaling
from ..environment import (
    INIT_METHOD_VARIABLE,
    next_rendezvous,
    placement_environment,
    rank_environment,
    rendezvous_environment,
    restart_environment,
    shared_cores,
)
from ..events import Abandoned, Added, Event, Exited, Failed, Interrupted, Joined, Lost
from ..nodes.part import JobPart
from ..progress import Progress
from ..restarts.history import PastRestart, RestartHistory
from ..restarts.rules import RestartPolicy
from ..restarts.words import restart_line
from ..restarts.workers import WorkerRestarts
from ..spec import JobSpec
from ..supervisor import SETTLE_SECONDS, UNKILLABLE_SECONDS
from ..tracebacks import headline
from . import job_processes
from .ending_signals import EndingSignals
from .engine import Engine
from .orphans import reap_orphans
from .output import WorkerOutput
from .starter import WorkerProcess, WorkerStarter

RENDEZVOUS_FILE = "rendezvous"  # beside the folders of the workers' credentials
COULD_NOT_START = 127  # what a shell exits with


class ScriptEngine(Engine):
    """Engine of one job of scripts.

    Args:
        spec: the job.
        log_dir: existing folder that receives ``<worker>.log`` of each worker.
        console: shows the workers' output.
        progress: tells how far the start is, and that a silent job runs.
        history: of the job's restarts; rounds before this one are in it.
        starter: of the job's processes; it outlives this engine.
        node: part of a job on several machines; None if this launcher runs all of it.
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
        super().__init__(len(spec.workers), spec.grace, node.folders if node else None, restarts, starter.reports)
        self._history = history
        self._node = node
        self.left_running: list[int] = []  # process ids of what the workers left running; ended by now
        self.last_traces: dict[int, Path] = {}  # by rank, of workers that failed
        self.spec = spec
        self.scaling = Scaling(self)
        self.log_dir = log_dir
        self.first_rank = node.placement.first_rank if node else 0
        self._console = console
        self._progress = progress
        self._starter = starter
        self._processes: dict[int, WorkerProcess] = {}
        self._cores = shared_cores(len(spec.workers)) if spec.pin else []
        if node:
            self.selector.register(node.wake, selectors.EVENT_READ, partial(self._abandon, node))
        self._outputs: dict[int, WorkerOutput] = {}
        console.on_closed = lambda: self.post(Interrupted(signal.SIGPIPE))  # end as other programs in a pipeline do

    def _write_last_trace(self, rank: int) -> None:
        """Write what a worker did last that failed, before its memory goes with the job."""
        end = self.supervisor.failures.worker(rank).exit
        if end is None or not end.code or end.by_launcher:
            return
        name = self.spec.workers[rank]
        path = self.log_dir / f"{name}.last.json"
        if self.events_file.write_trace(rank, name, self.first_rank + rank, path):
            self.last_traces[rank] = path

    def run_to_the_end(self, signals: EndingSignals) -> None:
        """Run the job, end what it leaves running, and free all resources.

        Args:
            signals: by which the user ends the job.

        Raises:
            LogDirError: a log cannot be written.
        """
        with self.resources as stack:
            stack.callback(self._close_outputs)
            stack.enter_context(signals.to(self.selector, lambda signum: self.post(Interrupted(signum))))
            self._guardian = stack.enter_context(guardian(self._starter.mark, str(self.credentials.root)))
            stack.callback(self._end_leftovers)
            stack.enter_context(self._starter.watched(self.selector))
            if self.spec.elastic:
                stack.enter_context(closing(self._open_to_commands()))
            self.begin()
            self.run()

    def _open_to_commands(self) -> LauncherSocket:
        return LauncherSocket(self.credentials.root / LAUNCHER, self.selector, self.scaling.answer)

    def add(self, name: str) -> None:
        """Start one more worker, or a new one in the place of one that has ended well.

        Raises:
            ValueError: there are too many.
        """
        if name not in self.spec.workers:
            self.spec = replace(self.spec, workers=(*self.spec.workers, name))
            self._console.add_worker(name)
            self.events_file.grow(len(self.spec.workers))
            self._progress.growing(len(self.spec.workers))
        rank = self.spec.workers.index(name)
        self.post(Added(rank, self.spec.policies[rank]))

    def ask_to_leave(self, name: str) -> None:
        """Ask a worker to end between two steps; started again before it has left, it is asked no more."""
        self.credentials.mark(name, LEAVE)

    def tell(self, line: str) -> None:
        """Tell the user of a change of the workers."""
        self._progress.tell(line)

    def start(self, rank: int) -> int | None:
        name = self.spec.workers[rank]
        credentials = self.credentials.add(name, self._node.files(rank) if self._node else {})
        output = self._new_output(rank)
        cores = self._cores[rank] if self._cores else ()
        try:
            variables = {
                **self._round_variables(),
                **self._own_variables(name),
                **restart_environment(self.spec.restarts, self._history.counts[rank]),
                **rank_environment(rank, name, self._node.placement if self._node else None),
                **credentials,
                **self.reports.variable(rank),
                **self.events_file.variable(rank),
                LOG_VARIABLE: os.path.abspath(self.log_dir / f"{name}.log"),
            }
            process = self._processes[rank] = self._starter.start(variables, output.writing_end, cores)
        except OSError as error:
            output.write(f"could not be started: {error}\n".encode())
            self.post(Exited(rank, COULD_NOT_START))
            return None
        finally:
            os.close(output.writing_end)
        self._tell_guardian(process.pid)
        self._progress.started(rank, time.monotonic())
        return process.pid

    def _new_output(self, rank: int) -> WorkerOutput:
        """Return the output for a new process; what the one before it left running is ended."""
        if (before := self._processes.pop(rank, None)) is not None:
            job_processes.end(None, {before.pid})
        if rank in self._outputs:
            self._outputs[rank].close()
        log = self.log_dir / f"{self.spec.workers[rank]}.log"
        output = WorkerOutput(rank, log, self._console, self.selector, self._history.counts[rank])
        self._outputs[rank] = output
        return output

    def _own_variables(self, name: str) -> dict[str, str]:
        """Return what the options set for a worker, and where the workers of this round of the job find one another.

        Where workers are started while others go on, that is a file: no worker has to outlive the others for it.
        """
        own = self.spec.variables_of(name)
        init_method = own.get(INIT_METHOD_VARIABLE) or self._starter.environment.get(INIT_METHOD_VARIABLE)
        if init_method:
            return own | {INIT_METHOD_VARIABLE: next_rendezvous(init_method, self._history.rounds)}
        in_file = (self.spec.restarts.widest.single or self.spec.elastic) and self._node is None
        return own | (
            {INIT_METHOD_VARIABLE: f"file://{self.credentials.root}/{RENDEZVOUS_FILE}{self._history.rounds}"}
            if in_file
            else {}
        )

    def signal(self, rank: int, signum: int) -> None:
        process = self._processes.get(rank)
        if process is None or process.returncode is not None:  # never started, or reaped
            return
        # A request goes to the worker's whole group, as a terminal's would. KILL goes to the worker alone: what it leaves is
        # ended afterwards and more gently, so that helpers that clean up after it (multiprocessing's resource tracker) can.
        if signum == signal.SIGKILL:
            process.kill()
        else:
            os.killpg(process.pid, signum)

    def reap(self, rank: int) -> int:
        code = self._processes[rank].wait()
        reap_orphans()
        self._outputs[rank].drain()
        return code

    def handle(self, event: Event) -> None:
        if isinstance(event, Failed):  # its traceback is shown, those that follow from it are only logged
            self._outputs[event.rank].drain()
        if isinstance(event, Exited):
            event = self._with_error(event)
        super().handle(event)
        self._console.quiet = not self._running
        match event:
            case Joined(rank, name):
                self._progress.joined(rank, name)
            case Lost(_, worker, reason):
                self._progress.lost(worker, reason, time.monotonic())
            case Exited(rank):
                self._progress.ended(rank)
                self._write_last_trace(rank)
                self._tell_given_up()

    def _tell_given_up(self) -> None:
        """Tell the workers that go on which others are not started again: they wait for their places no more."""
        if ranks := self.supervisor.restarts.given_up:
            self.credentials.note(GIVEN_UP, "".join(f"{rank}\n" for rank in sorted(ranks)))

    def _with_error(self, event: Exited) -> Exited:
        """Return the event with the exception in the worker's log, where restarts depend on it."""
        if event.code <= 0 or self.spec.restarts.widest is RestartPolicy.NEVER:
            return event
        return replace(event, error=headline(self.log_dir / f"{self.spec.workers[event.rank]}.log", event.code))

    def tell_restart(self, restart: PastRestart) -> None:
        self._outputs[restart.failure.rank].drain()
        self._progress.restarting(restart.ranks, restart_line(restart, self.spec.workers))

    def refresh(self) -> float | None:
        now = time.monotonic()
        self._console.tick(now)
        if self._running:
            self._progress.tick(now, self._console.wrote_at)
        return self._console.due

    def _abandon(self, node: JobPart) -> None:
        self.selector.unregister(node.wake)
        self.post(Abandoned(node.ended_because))

    def _round_variables(self) -> dict[str, str]:
        """Return the variables that the workers share in this round of the job."""
        node = self._node
        rendezvous = (
            placement_environment(node.placement, node.listen_host)
            if node
            else rendezvous_environment(0 if self.spec.elastic else len(self.spec.workers), self.port)
        )
        return {"COLUMNS": str(self._console.columns), **rendezvous}

    def _tell_guardian(self, session: int) -> None:
        assert self._guardian.stdin is not None
        with suppress(BrokenPipeError):  # somebody killed it; the job goes on without
            self._guardian.stdin.write(f"{session}\n".encode())
            self._guardian.stdin.flush()

    def _end_leftovers(self) -> None:
        for process in self._processes.values():
            if process.returncode is None:  # only after an error of ours, or when it cannot be killed
                process.kill()
        sessions = {process.pid for process in self._processes.values()}
        self.left_running = job_processes.end(self._starter.mark, sessions, self._starter.own_processes)
        reap_orphans()
        self.reports.skip()
        for output in self._outputs.values():
            output.drain()

    def _close_outputs(self) -> None:
        for output in self._outputs.values():
            output.close()


@contextmanager
def guardian(job: str, credentials: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process that ends the job's workers, and removes their credentials, when this process is gone."""
    command = [sys.executable, "-I", "-S", job_processes.__file__, job, credentials]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()
