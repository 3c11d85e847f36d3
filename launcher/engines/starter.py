"""Starter of a job's worker processes, in all its rounds: by a fork server or its successor; else by an interpreter each.

A guardian process outlives the launcher, and ends the workers if the launcher is killed.
"""

import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from ..cores import on_cores
from ..environment import SECRET_VARIABLE, helpful_defaults, job_mark, own_environment
from ..exit_words import describe_exit
from ..nodes.token import TOKEN_VARIABLE
from ..spec import JobSpec
from ..worker_files import ReportFile
from . import job_processes
from .forked import ForkedProcess, ForkServer, adoption, reap_orphans

WorkerProcess = subprocess.Popen[bytes] | ForkedProcess
SECRETS = (SECRET_VARIABLE, TOKEN_VARIABLE)  # of other jobs, and for launchers only
MOST_FORK_SERVERS = 5
"""Fork servers of one job; when the last has died, each worker starts an interpreter."""


class WorkerStarter:
    """Starter of the processes of one job's workers.

    Args:
        spec: the job.
        tell: called with a line if a fork server has died.

    Attributes:
        environment: variables that the workers share in all rounds.
        reports: file that they inherit.
        left_running: process ids of what the workers of the last round left running; ended by now.
    """

    def __init__(self, spec: JobSpec, tell: Callable[[str], None]) -> None:
        self._command = spec.command
        self._servers_left = MOST_FORK_SERVERS if spec.forks else 0
        self._tell = tell
        self._resources = ExitStack()
        self.left_running: list[int] = []
        self._mark = os.urandom(8).hex()
        self._processes: list[WorkerProcess] = []  # of this round
        self.reports = self._resources.enter_context(closing(ReportFile()))
        self.environment = {
            **helpful_defaults(len(spec.workers)),
            **{name: value for name, value in own_environment().items() if name not in SECRETS},
            "PYTHONUNBUFFERED": "1",
            **job_mark(self._mark),
        }
        self._server: ForkServer | None = None
        self._selector: selectors.BaseSelector | None = None
        if self._servers_left:
            self._resources.enter_context(adoption())
            self._resources.callback(self._close_server)
            self._start_server()

    @contextmanager
    def in_round(self, selector: selectors.BaseSelector, credentials: Path) -> Iterator[None]:
        """Start the workers of one round in the block, and end what they leave running after it.

        A fork server that dies is replaced from the selector's loop: its successor has imported when it is needed.

        Args:
            selector: of that loop.
            credentials: folder that goes with the round.
        """
        self._processes = []
        with guardian(self._mark, str(credentials)) as self._guardian:
            try:
                self._selector = selector
                self._watch()
                yield
            finally:
                self._watch_no_more()
                self._selector = None
                self._end_round()

    def start(self, variables: Mapping[str, str], output: int, cores: Collection[int]) -> WorkerProcess:
        """Start a worker.

        Args:
            variables: added to the environment that all share.
            output: file for its standard output and error.
            cores: numbers of those that it may use; empty for all.

        Raises:
            OSError: it cannot be started.
        """
        process = self._forked(variables, output, cores) or self._spawned(variables, output, cores)
        self._processes.append(process)
        assert self._guardian.stdin is not None, "it is a pipe"
        with suppress(BrokenPipeError):  # it was killed; the job goes on without
            self._guardian.stdin.write(f"{process.pid}\n".encode())
            self._guardian.stdin.flush()
        return process

    def end_session(self, process: WorkerProcess) -> None:
        """End what a worker that has ended left running in its session, and forget it."""
        self._processes.remove(process)
        job_processes.end(None, {process.pid})

    def close(self) -> None:
        """End the fork server, and free the file; workers go on."""
        self._resources.close()

    def _forked(self, variables: Mapping[str, str], output: int, cores: Collection[int]) -> WorkerProcess | None:
        while self._server is not None:
            with suppress(ConnectionError):
                return self._server.start(variables, output, cores)
            self._replace_server()
        return None

    def _spawned(self, variables: Mapping[str, str], output: int, cores: Collection[int]) -> WorkerProcess:
        with on_cores(cores):
            return subprocess.Popen(
                self._command,
                env={**self.environment, **variables},
                pass_fds=[self.reports.descriptor],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _end_round(self) -> None:
        for process in self._processes:
            if process.returncode is None:  # only after an error of ours, or when it cannot be killed
                process.kill()
        sessions, spared = {process.pid for process in self._processes}, {self._server.pid} if self._server else set()
        self.left_running = job_processes.end(self._mark, sessions, spared)
        reap_orphans()
        self.reports.skip()

    def _start_server(self) -> None:
        interpreter, *program = self._command
        self._servers_left -= 1
        self._server = ForkServer(interpreter, program, self.environment, self.reports.descriptor)

    def _replace_server(self) -> None:
        """Tell how the fork server has died, and start its successor, unless it could not even begin."""
        assert self._server is not None, "it was started"
        answered, code = self._server.answered, self._server.end()
        self._close_server()
        successor = (answered or code < 0) and self._servers_left > 0
        then = (
            "its workers go on, and another is started" if successor else "workers that start now import for themselves"
        )
        self._tell(f"the fork server of this job {describe_exit(code).partition(':')[0]}; {then}")
        if successor:
            self._start_server()
            self._watch()

    def _close_server(self) -> None:
        if self._server is not None:
            self._watch_no_more()
            self._server.close()
            self._server = None

    def _watch(self) -> None:
        if self._server is not None and self._selector is not None:
            self._selector.register(self._server.pidfd, selectors.EVENT_READ, self._replace_server)

    def _watch_no_more(self) -> None:
        if self._server is not None and self._selector is not None:
            with suppress(KeyError):  # it was not watched
                self._selector.unregister(self._server.pidfd)


@contextmanager
def guardian(job: str, credentials: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process that ends the job's workers, and removes their credentials, when this process is gone."""
    command = [sys.executable, "-I", "-S", job_processes.__file__, job, credentials]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()
