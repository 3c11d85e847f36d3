"""Workers of ``telegrad run``: each is a script in a process of its own, with a log, and its output on one terminal.

Each leads a session, so that a terminal's Ctrl-C reaches the launcher only, which passes it on once.
"""

import os
import selectors
import signal
import time
from dataclasses import replace
from pathlib import Path

from ...base.job_credentials import GIVEN_UP
from ..console import WorkerConsole
from ..cores import shared_cores
from ..environment import WorkerPlace
from ..events import Event, Exited, Failed, Joined, Lost
from ..progress import Progress
from ..restarts.history import PastRestart
from ..restarts.rules import RestartPolicy
from ..restarts.words import restart_line
from ..spec import JobSpec
from ..supervisor import JobPhase, Supervisor
from ..tracebacks import headline
from .engine import JobWorkers
from .forked import reap_orphans
from .output import WorkerOutput
from .starter import WorkerProcess, WorkerStarter


class ScriptWorkers(JobWorkers):
    """Workers of one round of a job. They must be closed.

    Args:
        spec: the job.
        place: what they find.
        supervisor: of the round.
        console: shows their output.
        progress: tells how far the start is, and that a silent job runs.
        starter: of their processes.
        selector: tells when there is output.

    Attributes:
        spec: the job; with the workers that have been added.
        last_traces: by rank, of workers that failed: what each did last.
    """

    def __init__(
        self,
        spec: JobSpec,
        place: WorkerPlace,
        supervisor: Supervisor,
        console: WorkerConsole,
        progress: Progress,
        starter: WorkerStarter,
        selector: selectors.BaseSelector,
    ) -> None:
        self.spec = spec
        self.reports, self.events = starter.reports, place.events
        self.last_traces: dict[int, Path] = {}
        self._place = place
        self._supervisor = supervisor
        self._console = console
        self._progress = progress
        self._starter = starter
        self._selector = selector
        self._cores = shared_cores(len(spec.workers)) if spec.pin else []
        self._processes: dict[int, WorkerProcess] = {}
        self._outputs: dict[int, WorkerOutput] = {}

    def add(self, name: str) -> None:
        """Make room for one worker more."""
        self.spec = replace(self.spec, workers=(*self.spec.workers, name))
        self._console.add_worker(name)
        self._place.events.grow(len(self.spec.workers))
        self._progress.growing(len(self.spec.workers))

    def start(self, rank: int) -> int | None:
        variables = self._place.variables(rank, self.spec.workers[rank])
        output = self._new_output(rank)
        try:
            process = self._processes[rank] = self._starter.start(
                {"COLUMNS": str(self._console.columns), **variables},
                output.writing_end,
                self._cores[rank] if self._cores else (),
            )
        except OSError as error:
            output.write(f"could not be started: {error}\n".encode())
            return None
        finally:
            os.close(output.writing_end)
        self._progress.started(rank, time.monotonic())
        return process.pid

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

    def reap(self, rank: int) -> Exited:
        code = self._processes[rank].wait()
        reap_orphans()
        self._outputs[rank].drain()
        if code <= 0 or self.spec.restarts.widest is RestartPolicy.NEVER:
            return Exited(rank, code)
        return Exited(rank, code, headline(self._place.log(self.spec.workers[rank]), code))  # restarts depend on it

    def restarting(self, restart: PastRestart) -> None:
        self._outputs[restart.failure.rank].drain()
        self._progress.restarting(restart.ranks, restart_line(restart, self.spec.workers))

    def saw(self, event: Event) -> None:
        match event:
            case Joined(rank, name):
                self._progress.joined(rank, name)
            case Lost(_, worker, reason):
                self._progress.lost(worker, reason, time.monotonic())
            case Failed(rank):  # its traceback is shown, those that follow from it are only logged
                self._outputs[rank].drain()
            case Exited(rank):
                self._progress.ended(rank)
                self._write_last_trace(rank)
                self._tell_given_up()
        self._console.quiet = self._supervisor.phase is not JobPhase.RUNNING

    def refresh(self) -> float | None:
        now = time.monotonic()
        self._console.tick(now)
        if self._supervisor.phase is JobPhase.RUNNING:
            self._progress.tick(now, self._console.wrote_at)
        return self._console.due

    def close(self) -> None:
        """Take what their outputs hold, and close these."""
        for output in self._outputs.values():
            output.drain()
            output.close()

    def _new_output(self, rank: int) -> WorkerOutput:
        """Return the output for a new process; what the one before it left running is ended."""
        if (before := self._processes.pop(rank, None)) is not None:
            self._starter.end_session(before)
        if rank in self._outputs:
            self._outputs[rank].close()
        restart = self._supervisor.restarts.history.counts[rank]
        log = self._place.log(self.spec.workers[rank])
        self._outputs[rank] = WorkerOutput(rank, log, self._console, self._selector, restart)
        return self._outputs[rank]

    def _write_last_trace(self, rank: int) -> None:
        """Write what a worker did last that failed, before its memory goes with the job."""
        end = self._supervisor.failures.worker(rank).exit
        if end is not None and end.code and not end.by_launcher:
            name = self.spec.workers[rank]
            path = self._place.log(name).with_suffix(".last.json")
            if self.events.write_trace(rank, name, self._place.first_rank + rank, path):
                self.last_traces[rank] = path

    def _tell_given_up(self) -> None:
        """Tell the workers that go on which others are not started again: they wait for their places no more."""
        if ranks := self._supervisor.restarts.given_up:
            self._place.credentials.note(GIVEN_UP, "".join(f"{rank}\n" for rank in sorted(ranks)))
