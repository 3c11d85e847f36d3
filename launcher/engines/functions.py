"""Workers of ``spawn``: each calls a function in a process that ``multiprocessing`` starts.

Each process leads a process group, which ends with it.
"""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from multiprocessing.process import BaseProcess
from typing import Any

from ...base import job_secrets
from ..credentials import CredentialFolders
from ..environment import (
    LOOPBACK_ADDRESS,
    SECRET_VARIABLE,
    changing_environment,
    given_port,
    helpful_defaults,
    own_environment,
    rank_environment,
    rendezvous_environment,
    reserve_port,
)
from ..events import Exited
from ..spawned_process import (
    UNPICKLABLE,
    PassedDescriptor,
    SpawnedWork,
    explain_unpicklable,
    main,
    main_module_stays_here,
)
from ..worker_files import EventsFile, ReportFile
from .engine import JobWorkers


class FunctionWorkers(JobWorkers):
    """Workers of one job of function calls. They must be closed.

    Args:
        context: of ``multiprocessing``; it knows the start method.
        work: the call that each worker makes.
        size: how many workers there are.
        daemon: the processes are daemons, as ``multiprocessing`` has them.

    Attributes:
        processes: those started so far, in order of rank.
        init_method: ``tcp://`` address of the job's rendezvous.
        credentials: folders of the workers' credentials.
    """

    def __init__(self, context: Any, work: SpawnedWork, size: int, daemon: bool) -> None:
        self.processes: list[BaseProcess] = []
        self._context = context
        self._work = work
        self._daemon = daemon
        self._resources = ExitStack()
        self.reports = self._resources.enter_context(closing(ReportFile()))
        self.events = self._resources.enter_context(closing(EventsFile(size)))
        port: int = self._resources.enter_context(reserve_port()).getsockname()[1]
        self.credentials = self._resources.enter_context(closing(CredentialFolders()))
        self._environment = SpawnEnvironment(size, port, self.credentials)
        self.init_method = self._environment.init_method
        self._resources.enter_context(self._environment.joinable_by_parent())

    def start(self, rank: int) -> int:
        name = f"worker{rank}"
        try:
            with self._environment.of(rank, name) as variables, main_module_stays_here():
                variables = {**variables, **self.events.variable(rank)}
                args = (self._work, rank, PassedDescriptor(self.reports.descriptor), variables)
                process: BaseProcess = self._context.Process(target=main, name=name, args=args, daemon=self._daemon)
                process.start()
        except UNPICKLABLE as error:
            raise TypeError(explain_unpicklable(self._work.fn, error)) from error
        self.processes.append(process)
        return self.pid(rank)

    def signal(self, rank: int, signum: int) -> None:
        try:
            os.killpg(self.pid(rank), signum)
        except ProcessLookupError:  # it does not lead its group yet
            with suppress(ProcessLookupError):  # or multiprocessing has just reaped it, in any thread
                os.kill(self.pid(rank), signum)

    def reap(self, rank: int) -> Exited:
        process = self.processes[rank]
        with suppress(ProcessLookupError):  # what it started ends with it
            os.killpg(self.pid(rank), signal.SIGKILL)
        process.join()
        assert process.exitcode is not None, "it was joined"
        return Exited(rank, process.exitcode)

    def pid(self, rank: int) -> int:
        """Return the process id of a worker."""
        pid = self.processes[rank].pid
        assert pid is not None, "it was started"
        return pid

    def kill(self) -> None:
        """Kill all processes at once."""
        for rank, process in enumerate(self.processes):
            if process.is_alive():
                self.signal(rank, signal.SIGKILL)
            process.join()

    def close(self) -> None:
        """Remove the credentials, and free the port and the files; processes go on."""
        self._resources.close()


@contextmanager
def _set_environment(forced: Mapping[str, str], defaults: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Set variables of this process for a child to inherit, ``defaults`` only where it has none; yield those that were set.

    A child cannot set all of them for itself: by the time it runs a line of ours, NumPy has read its own. Where it does not
    inherit them (multiprocessing's fork server inherits those of the first child), it sets the others.
    """
    with changing_environment:
        changed = {**{name: value for name, value in defaults.items() if name not in os.environ}, **forced}
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        try:
            yield changed
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


class SpawnEnvironment:
    """Environment of a job whose processes inherit this one's; the user's own rendezvous and secret stay.

    Args:
        world_size: how many workers there are.
        port: of the rendezvous, unless the user has set MASTER_PORT.
        folders: for the workers' credentials.

    Raises:
        ValueError: MASTER_PORT is not a number.
    """

    def __init__(self, world_size: int, port: int, folders: CredentialFolders) -> None:
        self._defaults = {**helpful_defaults(world_size), **rendezvous_environment(world_size, port)}
        self._folders = folders
        self._port = given_port() or port
        self.init_method = f"tcp://{LOOPBACK_ADDRESS}:{self._port}"

    def joinable_by_parent(self) -> AbstractContextManager[None]:
        """Let this process join the job, although the job's secret is not in its environment."""
        if self._has_secret():
            return nullcontext()
        return job_secrets.remembered(self._port, self._folders.secret)

    def of(self, rank: int, name: str) -> AbstractContextManager[dict[str, str]]:
        """Make this process's environment that of a worker, as long as one is started; yields what it adds."""
        credentials = {} if self._has_secret() else self._folders.add(name)
        return _set_environment({**rank_environment(rank, name), **credentials}, self._defaults)

    @staticmethod
    def _has_secret() -> bool:
        return SECRET_VARIABLE in own_environment()
