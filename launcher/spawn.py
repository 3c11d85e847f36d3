"""``spawn``: calls a function in several processes, in the manner of ``torch.multiprocessing.spawn``.

The same supervisor as for scripts decides what happens when a process fails; here its instructions go to
``multiprocessing``.
"""

import contextlib
import multiprocessing
import os
import selectors
import signal
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from . import child
from .diagnosis import how_it_ended, signal_name
from .environment import WORKER_VARIABLE, SpawnEnvironment, own_environment, reserve_port
from .errors import ProcessExitedException, ProcessRaisedException
from .passing import UNPICKLABLE, PassedDescriptor, Work, main_module_stays_here, what_cannot_be_pickled
from .reports import LOOK_EVERY, Reports
from .spec import check_count, check_seconds
from .supervisor import (
    Begin,
    Event,
    Exited,
    Instruction,
    Interrupted,
    Phase,
    Signal,
    Start,
    Supervisor,
    TimePassed,
)

GRACE = 3.0
START_METHODS = ("spawn", "fork", "forkserver")


class ProcessContext:
    """The processes that ``spawn(..., join=False)`` started; ``processes`` is in order of rank.

    The process that started them can be a worker of their job, too: it passes ``init_method`` on to
    ``GrpcRpcBackendOptions``, or has set MASTER_ADDR and MASTER_PORT before.
    """

    def __init__(self, context: BaseContext, work: Work, nprocs: int, daemon: bool) -> None:
        self.processes: list[BaseProcess] = []
        self._supervisor = Supervisor(nprocs, GRACE)
        self._events: deque[Event] = deque([Begin()])
        self._selector = selectors.DefaultSelector()
        self._reports = Reports()
        self._resources = contextlib.ExitStack()
        self._release = weakref.finalize(self, self._resources.close)  # a context may be dropped without being joined
        self._resources.enter_context(self._selector)
        self._resources.callback(self._reports.close)
        port = self._resources.enter_context(contextlib.closing(reserve_port())).getsockname()[1]
        environment = SpawnEnvironment(nprocs, port)
        self.init_method = environment.init_method
        self._resources.enter_context(environment.joinable_by_parent())
        self._new_process = partial(_new_process, context, work, self._reports.descriptor, environment, daemon)
        try:
            self._step()
        except BaseException:
            self._kill_all()
            raise

    def pids(self) -> list[int]:
        """The process ids, in order of rank."""
        return [_pid(process) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for all processes, at most ``timeout`` seconds; returns whether all have ended.

        The first failure ends the others: TERM, and KILL after ``grace_period`` seconds (``None``: 3). Raises
        ``ProcessRaisedException`` if the function raised in a process, ``ProcessExitedException`` if a process died
        or exited with a code other than 0. On ``KeyboardInterrupt`` the processes are interrupted, and killed after
        the grace.
        """
        for name, seconds in (("timeout", timeout), ("grace_period", grace_period)):
            if seconds is not None:
                check_seconds(f"`{name}`", seconds)
        self._supervisor.grace = GRACE if grace_period is None else grace_period
        until = None if timeout is None else time.monotonic() + timeout
        try:
            done = self._run(until)
        except KeyboardInterrupt:
            self._end_by_interrupt()
            raise
        if done:
            self._release()
            self._raise_failure()
        return done

    def _run(self, until: float | None) -> bool:
        """Handles events until all is over; a time-out counts only while nothing has failed."""
        while self._supervisor.phase is not Phase.FINISHED:
            running = self._supervisor.phase is Phase.RUNNING
            wake_at = until if running else self._supervisor.wake_at
            left = LOOK_EVERY if wake_at is None else min(wake_at - time.monotonic(), LOOK_EVERY)
            ready = self._selector.select(left)
            self._events.extend(self._reports.read())  # first: whatever else is ready may be a consequence
            for key, _ in ready:
                key.data(self)
            if not self._events and running and until is not None and time.monotonic() >= until:
                return False
            self._events.append(TimePassed())
            self._step()
        return True

    def _step(self) -> None:
        while self._events:
            for instruction in self._supervisor.handle(self._events.popleft(), time.monotonic()):
                self._carry_out(instruction)

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case Start(rank):
                self._start(rank)
            case Signal(rank, signum):
                _signal(_pid(self.processes[rank]), signum)

    def _start(self, rank: int) -> None:
        process = self._new_process(rank)
        self.processes.append(process)
        death = os.pidfd_open(_pid(process))
        self._resources.callback(os.close, death)
        # What the selector holds does not hold this context, so that it can be dropped.
        exited = partial(ProcessContext._exited, rank=rank, death=death)
        self._selector.register(death, selectors.EVENT_READ, exited)

    def _exited(self, rank: int, death: int) -> None:
        self._selector.unregister(death)
        process = self.processes[rank]
        with contextlib.suppress(ProcessLookupError):  # what it started ends with it
            os.killpg(_pid(process), signal.SIGKILL)
        process.join()
        code = process.exitcode
        assert code is not None
        self._events.append(Exited(rank, code))

    def _end_by_interrupt(self) -> None:
        self._events.append(Interrupted(signal.SIGINT))
        try:
            self._step()
            self._run(None)
        except KeyboardInterrupt:
            self._kill_all()
        self._release()

    def _kill_all(self) -> None:
        for process in self.processes:
            _signal(_pid(process), signal.SIGKILL)
            process.join()
        self._release()

    def _raise_failure(self) -> None:
        cause = self._supervisor.cause
        if cause is None:
            return
        pid, consequences = _pid(self.processes[cause.rank]), self._consequences(cause.rank)
        who = f"process {cause.rank} (pid {pid})"
        if self._supervisor.blame.raised(cause.rank):
            traceback = self._reports.tracebacks[cause.rank]
            text = f"{who} raised an exception; there it was:\n\n{traceback}{consequences}"
            raise ProcessRaisedException(text, cause.rank, pid)
        by = signal_name(-cause.code).split()[0] if cause.code < 0 else None
        early = "" if cause.code else ", without rpc.shutdown() and while others needed it"
        text = f"{who} {how_it_ended(cause.code)}{early}{consequences}"
        raise ProcessExitedException(text, cause.rank, pid, cause.code, by)

    def _consequences(self, cause: int) -> str:
        blame = self._supervisor.blame
        lines = [
            f"process {rank} lost {', '.join(f'process {other}' for other in lost)}"
            for rank in range(len(self.processes))
            if rank != cause and (lost := blame.lost_by(rank))
        ]
        return "\n" + "\n".join(lines) if lines else ""


def spawn(
    fn: Callable[..., object],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Calls ``fn(i, *args)`` in ``nprocs`` processes, with ``i`` from 0 to ``nprocs - 1``.

    With ``join`` it waits and returns ``None``, raising as ``ProcessContext.join`` does; without, it returns the
    ``ProcessContext``. Each process finds RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, TELEGRAD_WORKER and
    TELEGRAD_SECRET in its environment; of those that tell where the job meets, what this process has set already stays.
    ``fn`` runs in a process group of its own, which ends with it, and with this process. What is defined in a notebook, or
    in a program that Python reads from standard input, is sent by value.

    Raises ``ValueError`` or ``TypeError`` for arguments that make no sense, or that cannot be pickled
    (``start_method="fork"`` pickles nothing), and ``RuntimeError`` in a worker that a launcher started.
    """
    _check(fn, args, nprocs, start_method)
    context = ProcessContext(multiprocessing.get_context(start_method), Work(fn, args), nprocs, daemon)
    if not join:
        return context
    context.join()
    return None


def _check(fn: object, args: object, nprocs: int, start_method: str) -> None:
    if (worker := own_environment().get(WORKER_VARIABLE)) is not None:
        raise RuntimeError(
            f"this process is {worker!r}, a worker that a launcher started, and spawn would start the job once more in each: "
            "run the script with `python` instead of `telegrad run`, or leave spawn out and start the workers with "
            "`telegrad run -n`; processes that are no workers of a job can be started with multiprocessing"
        )
    if not callable(fn):
        raise TypeError(f"`fn` must be a function that takes a process's number first, you gave {fn!r}")
    if not isinstance(args, tuple):
        raise TypeError(f"`args` must be a tuple, you gave {args!r}: write args=(x,) for a single argument")
    if not isinstance(nprocs, int) or isinstance(nprocs, bool):
        raise TypeError(f"`nprocs` must be a whole number of processes, you gave {nprocs!r}")
    if nprocs < 1:
        raise ValueError(f"`nprocs` must be at least 1, you gave {nprocs}")
    check_count(nprocs, "`nprocs`")
    if start_method not in START_METHODS:
        raise ValueError(f"`start_method` must be one of {', '.join(START_METHODS)}, you gave {start_method!r}")


def _new_process(
    context: Any, work: Work, reports: int, environment: SpawnEnvironment, daemon: bool, rank: int
) -> BaseProcess:
    name = f"worker{rank}"
    try:
        with environment.of(rank, name) as variables, main_module_stays_here():
            args = (work, rank, PassedDescriptor(reports), variables)
            process: BaseProcess = context.Process(target=child.main, name=name, args=args, daemon=daemon)
            process.start()
    except UNPICKLABLE as error:
        raise TypeError(what_cannot_be_pickled(work.fn, error)) from error
    return process


def _pid(process: BaseProcess) -> int:
    assert process.pid is not None, "it was started"
    return process.pid


def _signal(pid: int, signum: int) -> None:
    try:
        os.killpg(pid, signum)
    except ProcessLookupError:  # it has not come to lead its group yet
        with contextlib.suppress(ProcessLookupError):  # or multiprocessing has just reaped it, from any thread
            os.kill(pid, signum)
