"""Starter of a job's worker processes, in all its rounds: by a fork server or its successor; else by an interpreter each."""

import os
import selectors
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress

from ..environment import SECRET_VARIABLE, helpful_defaults, on_cores, own_environment
from ..exit_words import describe_exit
from ..nodes.token import TOKEN_VARIABLE
from ..spec import JobSpec
from ..worker_files import ReportFile
from . import job_processes
from .forked import ForkedProcess, ForkServer
from .orphans import adoption

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
        mark: that of the job's processes (``job_processes``).
        environment: variables that the workers share in all rounds.
        reports: file that they inherit.
    """

    def __init__(self, spec: JobSpec, tell: Callable[[str], None]) -> None:
        self._spec = spec
        self._tell = tell
        self._resources = ExitStack()
        self.mark = os.urandom(8).hex()
        self.reports = self._resources.enter_context(closing(ReportFile()))
        self.environment = {
            **helpful_defaults(len(spec.workers)),
            **{name: value for name, value in own_environment().items() if name not in SECRETS},
            "PYTHONUNBUFFERED": "1",
            **job_processes.mark(self.mark),
        }
        self._server: ForkServer | None = None
        self._selector: selectors.BaseSelector | None = None
        self._servers_left = MOST_FORK_SERVERS if spec.forks else 0
        if spec.forks:
            self._resources.enter_context(adoption())
            self._resources.callback(self._close_server)
            self._start_server()

    @property
    def own_processes(self) -> set[int]:
        """Process ids of what is no worker, and carries the job's mark."""
        return {self._server.pid} if self._server else set()

    def start(self, variables: Mapping[str, str], output: int, cores: Collection[int]) -> WorkerProcess:
        """Start a worker.

        Args:
            variables: added to the environment that all share.
            output: file for its standard output and error.
            cores: numbers of those that it may use; empty for all.

        Raises:
            OSError: it cannot be started.
        """
        while self._server is not None:
            with suppress(ConnectionError):
                return self._server.start(variables, output, cores)
            self._replace_server()
        with on_cores(cores):
            return subprocess.Popen(
                self._spec.command,
                env={**self.environment, **variables},
                pass_fds=[self.reports.descriptor],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @contextmanager
    def watched(self, selector: selectors.BaseSelector) -> Iterator[None]:
        """Replace a fork server as soon as it dies, from a selector's loop: its successor has imported when it is needed."""
        self._selector = selector
        self._watch()
        try:
            yield
        finally:
            self._watch_no_more()
            self._selector = None

    def close(self) -> None:
        """End the fork server, and free the file; workers go on."""
        self._resources.close()

    def _start_server(self) -> None:
        interpreter, *program = self._spec.command
        self._servers_left -= 1
        self._server = ForkServer(interpreter, program, self.environment, self.reports.descriptor)
        self._watch()

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
