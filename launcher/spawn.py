"""``spawn``: calls a function in several processes, in the manner of ``torch.multiprocessing.spawn``."""

import multiprocessing
import selectors
import signal
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack, closing
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from ..base.multiprocessing_children import GUARD, imports_main
from .engines.engine import Engine
from .engines.functions import FunctionWorkers
from .environment import WORKER_VARIABLE, given_port, own_environment
from .errors import ProcessExitedException, ProcessRaisedException
from .events import Interrupted
from .exit_words import describe_exit, signal_name
from .root_cause import WorkerExit
from .spawned_process import SpawnedWork
from .spec import check_count, check_seconds
from .supervisor import Supervisor

SPAWN_GRACE_SECONDS = 3.0
START_METHODS = ("spawn", "fork", "forkserver")


class ProcessContext:
    """Processes that ``spawn(..., join=False)`` started.

    The process that started them can be a worker of their job, too: it passes ``init_method`` on to
    ``GrpcRpcBackendOptions``, or has set MASTER_ADDR and MASTER_PORT before.

    Args:
        context: multiprocessing's context for the start method.
        work: function and arguments of the processes.
        nprocs: number of processes.
        daemon: the processes end with this one.

    Attributes:
        processes: the processes, in order of rank.
        init_method: ``tcp://`` address of the job's rendezvous.
    """

    def __init__(self, context: BaseContext, work: SpawnedWork, nprocs: int, daemon: bool) -> None:
        resources = ExitStack()
        self._workers = resources.enter_context(closing(FunctionWorkers(context, work, nprocs, daemon)))
        self._supervisor = Supervisor(nprocs, SPAWN_GRACE_SECONDS)
        selector = resources.enter_context(selectors.DefaultSelector())
        self._engine = resources.enter_context(closing(Engine(self._supervisor, self._workers, selector)))
        self._release = weakref.finalize(self, resources.close)  # a context may be dropped without being joined
        self.processes: list[BaseProcess] = self._workers.processes
        self.init_method = self._workers.init_method
        try:
            self._engine.begin()
        except BaseException:
            self.kill()
            raise

    def pids(self) -> list[int]:
        """Return the process ids, in order of rank."""
        return [self._workers.pid(rank) for rank in range(len(self.processes))]

    def kill(self) -> None:
        """Kill the processes that still run, at once."""
        self._workers.kill()
        self._release()

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for all processes. The first failure ends the others: TERM, and KILL after the grace.

        Args:
            timeout: seconds to wait while no process has failed; None waits until all have ended.
            grace_period: seconds between TERM and KILL; None means 3.

        Returns:
            True if all processes have ended.

        Raises:
            ProcessRaisedException: the function raised in a process.
            ProcessExitedException: a process was killed, or exited with a code other than 0.
            KeyboardInterrupt: the user pressed Ctrl-C; the processes were interrupted, and killed after the grace.
            ValueError: a time is negative, not a number, or longer than 20 days.
            TypeError: a time is not a number.
        """
        for name, seconds in (("timeout", timeout), ("grace_period", grace_period)):
            if seconds is not None:
                check_seconds(f"`{name}`", seconds)
        self._supervisor.grace = SPAWN_GRACE_SECONDS if grace_period is None else grace_period
        try:
            done = self._engine.run(None if timeout is None else time.monotonic() + timeout)
        except KeyboardInterrupt:
            self._interrupt()
            raise
        if done:
            self._release()
            if cause := self._supervisor.cause:
                self._raise_failure(cause)
        return done

    def _interrupt(self) -> None:
        self._engine.post(Interrupted(signal.SIGINT))
        try:
            self._engine.run()
        except KeyboardInterrupt:
            self._workers.kill()
        self._release()

    def _raise_failure(self, cause: WorkerExit) -> None:
        pid, consequences = self._workers.pid(cause.rank), self._consequences(cause.rank)
        who = f"process {cause.rank} (pid {pid})"
        if self._supervisor.failures.worker(cause.rank).raised:
            traceback = self._workers.reports.tracebacks[cause.rank]
            text = f"{who} raised an exception; there it was:\n\n{traceback}{consequences}"
            raise ProcessRaisedException(text, cause.rank, pid)
        by = signal_name(-cause.code).split()[0] if cause.code < 0 else None
        early = "" if cause.code else ", without rpc.shutdown() and while others needed it"
        events = "".join(f"\n    {line}" for line in self._engine.last_events.get(cause.rank, ()))
        text = f"{who} {describe_exit(cause.code)}{early}{events}{consequences}"
        raise ProcessExitedException(text, cause.rank, pid, cause.code, by)

    def _consequences(self, cause: int) -> str:
        lines = [
            f"\nprocess {rank} lost {', '.join(f'process {other}' for other in lost)}"
            for rank in range(len(self.processes))
            if rank != cause and (lost := self._supervisor.failures.lost_by(rank))
        ]
        return "".join(lines)


def spawn(
    fn: Callable[..., object],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call ``fn(i, *args)`` in ``nprocs`` processes, with ``i`` from 0 to ``nprocs - 1``.

    Each process finds RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, TELEGRAD_WORKER and TELEGRAD_CREDENTIALS (a
    folder with the job's secret) in its environment. Where this process has set MASTER_ADDR, MASTER_PORT, WORLD_SIZE or
    TELEGRAD_SECRET, they stay. ``fn`` runs in a process group of its own, which ends with it, and with this process.
    A process that fails ends the others; none is started again (``telegrad run --restart`` does that).
    Definitions of a notebook, or of a program that Python reads from standard input, are sent by value.

    Args:
        fn: the function. It must be picklable, unless ``start_method`` is ``"fork"``.
        args: its further arguments, picklable in the same way.
        nprocs: how many processes to start.
        join: wait for them.
        daemon: make them daemons: they cannot start processes with ``multiprocessing``, which kills them at this one's exit.
        start_method: ``"spawn"``, ``"fork"`` or ``"forkserver"``, as in ``multiprocessing``; not ``"fork"`` where this process
            has used CUDA with PyTorch, or JAX.

    Returns:
        None if ``join``, else the processes' context.

    Raises:
        ProcessRaisedException: with ``join``, the function raised in a process.
        ProcessExitedException: with ``join``, a process was killed, or exited with a code other than 0.
        TypeError: an argument has the wrong type, or cannot be pickled.
        ValueError: an argument has a value that is not possible.
        RuntimeError: this process is a worker that a launcher started.
    """
    _check(fn, args, nprocs, start_method)
    context = ProcessContext(multiprocessing.get_context(start_method), SpawnedWork(fn, args), nprocs, daemon)
    if not join:
        return context
    context.join()
    return None


def check_number(count: object, argument: str) -> None:
    """Check a number of processes.

    Raises:
        TypeError, ValueError: it is none, or too large for this machine; the message names ``argument``.
    """
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{argument} must be a whole number of processes, you gave {count!r}")
    if count < 1:
        raise ValueError(f"{argument} must be at least 1, you gave {count}")
    check_count(count, argument)


def _check(fn: object, args: object, nprocs: int, start_method: str) -> None:
    if imports_main():
        raise RuntimeError(f"this process came to spawn while it imported the script that has started it: {GUARD}")
    if (worker := own_environment().get(WORKER_VARIABLE)) is not None:
        raise RuntimeError(
            f"this process is {worker!r}, a worker that a launcher started, and spawn would start the job once more in each: "
            "run the script with `python` instead of `telegrad run`, or leave spawn out and start the workers with "
            "`telegrad run -n`; processes that are not workers of a job can be started with multiprocessing"
        )
    if not callable(fn):
        raise TypeError(f"`fn` must be a function that takes a process's number first, you gave {fn!r}")
    if not isinstance(args, tuple):
        raise TypeError(f"`args` must be a tuple, you gave {args!r}: write args=(x,) for a single argument")
    check_number(nprocs, "`nprocs`")
    if start_method not in START_METHODS:
        raise ValueError(f"`start_method` must be one of {', '.join(START_METHODS)}, you gave {start_method!r}")
    if start_method == "fork":
        _check_fork()
    given_port()


def _check_fork() -> None:
    from ..rpc.extend import started_libraries  # loads much, which other starts do without

    if used := started_libraries():
        raise ValueError(
            f"this process has used {' and '.join(sorted(used))}, and a process that is forked from it cannot: pass "
            'start_method="spawn", or use it in the new processes alone'
        )
