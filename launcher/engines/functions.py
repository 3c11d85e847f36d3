"""Engine for ``spawn``: each worker calls a function in a process that ``multiprocessing`` starts.

Each process leads a process group, which ends with it.
"""

import os
import signal
from contextlib import suppress
from multiprocessing.process import BaseProcess
from typing import Any

from ..environment import SpawnEnvironment
from ..spawned_process import (
    UNPICKLABLE,
    PassedDescriptor,
    SpawnedWork,
    explain_unpicklable,
    main,
    main_module_stays_here,
)
from .engine import Engine


class FunctionEngine(Engine):
    """Engine of one job of function calls.

    Args:
        context: of ``multiprocessing``; it knows the start method.
        work: the call that each worker makes.
        size: how many workers there are.
        grace: seconds between asking workers to end and killing them.
        daemon: the processes are daemons, as ``multiprocessing`` has them.
    """

    def __init__(self, context: Any, work: SpawnedWork, size: int, grace: float, daemon: bool) -> None:
        super().__init__(size, grace)
        self.processes: list[BaseProcess] = []  # in order of rank
        self._context = context
        self._work = work
        self._daemon = daemon
        self._environment = SpawnEnvironment(size, self.port, self.credentials)
        self.init_method = self._environment.init_method
        self.resources.enter_context(self._environment.joinable_by_parent())

    def start(self, rank: int) -> int:
        name = f"worker{rank}"
        try:
            with self._environment.of(rank, name) as variables, main_module_stays_here():
                variables = {**variables, **self.events_file.variable(rank)}
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

    def reap(self, rank: int) -> int:
        process = self.processes[rank]
        with suppress(ProcessLookupError):  # what it started ends with it
            os.killpg(self.pid(rank), signal.SIGKILL)
        process.join()
        assert process.exitcode is not None, "it was joined"
        return process.exitcode

    def pid(self, rank: int) -> int:
        """Return the process id of a worker."""
        pid = self.processes[rank].pid
        assert pid is not None, "it was started"
        return pid

    def kill(self) -> None:
        """Kill all processes at once, and free the engine's resources."""
        for rank, process in enumerate(self.processes):
            if process.is_alive():
                self.signal(rank, signal.SIGKILL)
            process.join()
        self.close()
