"""``spawn``: calls a function in several processes, in the manner of ``torch.multiprocessing.spawn``.

The same supervisor as for scripts decides what happens when a process fails; here its instructions go to
``multiprocessing``.
"""

import contextlib
import multiprocessing
import os
import pickle
import selectors
import signal
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

from . import child
from .diagnosis import how_it_ended, signal_name
from .environment import defaults_in_environment, helpful_defaults, job_environment, rank_environment, reserve_port
from .errors import ProcessExitedException, ProcessRaisedException
from .supervisor import (
    Begin,
    Death,
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
    """The processes that ``spawn(..., join=False)`` started; ``processes`` is in order of rank."""

    def __init__(
        self, context: BaseContext, fn: Callable[..., object], args: tuple[Any, ...], nprocs: int, daemon: bool
    ) -> None:
        self.processes: list[BaseProcess] = []
        self._supervisor = Supervisor(nprocs, GRACE)
        self._events: deque[Event] = deque([Begin()])
        self._failures: dict[int, str] = {}  # by rank: the traceback that the process sent
        self._selector = selectors.DefaultSelector()
        self._resources = contextlib.ExitStack()
        self._release = weakref.finalize(self, self._resources.close)  # a context may be dropped without being joined
        self._resources.enter_context(self._selector)
        port = self._resources.enter_context(contextlib.closing(reserve_port())).getsockname()[1]
        self._new_process = partial(_new_process, context, fn, args, _shared_environment(nprocs, port), daemon)
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
            left = None if wake_at is None else wake_at - time.monotonic()
            ready = self._selector.select(left)
            for key, _ in ready:
                key.data(self)
            if not ready and left is not None and running:
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
        failures, process = self._new_process(rank)
        self.processes.append(process)
        self._resources.enter_context(failures)
        # What the selector holds does not hold this context, so that it can be dropped.
        failed = partial(ProcessContext._failed, rank=rank, failures=failures)
        self._selector.register(failures, selectors.EVENT_READ, failed)
        death = os.pidfd_open(_pid(process))
        self._resources.callback(os.close, death)
        exited = partial(ProcessContext._exited, rank=rank, death=death, failures=failures)
        self._selector.register(death, selectors.EVENT_READ, exited)

    def _failed(self, rank: int, failures: Connection) -> None:
        """Takes the traceback while the process lives: a long one does not fit into the pipe."""
        if failures in self._selector.get_map():
            self._selector.unregister(failures)
            with contextlib.suppress(EOFError, ConnectionError):
                self._failures[rank] = failures.recv()

    def _exited(self, rank: int, death: int, failures: Connection) -> None:
        self._selector.unregister(death)
        process = self.processes[rank]
        with contextlib.suppress(ProcessLookupError):  # what it started ends with it
            os.killpg(_pid(process), signal.SIGKILL)
        process.join()
        self._failed(rank, failures)
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
        if cause is not None:
            raise _exception(cause, _pid(self.processes[cause.rank]), self._failures.get(cause.rank))


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
    TELEGRAD_SECRET in its environment, those that this process has already excepted. ``fn`` runs in a process group
    of its own, which ends with it, and with this process.

    Raises ``ValueError`` or ``TypeError`` for arguments that make no sense, or that cannot be pickled
    (``start_method="fork"`` pickles nothing).
    """
    _check(fn, args, nprocs, start_method)
    context = ProcessContext(multiprocessing.get_context(start_method), fn, args, nprocs, daemon)
    if not join:
        return context
    context.join()
    return None


def _check(fn: object, args: object, nprocs: int, start_method: str) -> None:
    if not callable(fn):
        raise TypeError(f"`fn` must be a function that takes a process's number first, you gave {fn!r}")
    if not isinstance(args, tuple):
        raise TypeError(f"`args` must be a tuple, you gave {args!r}: write args=(x,) for a single argument")
    if nprocs < 1:
        raise ValueError(f"`nprocs` must be at least 1, you gave {nprocs}")
    if start_method not in START_METHODS:
        raise ValueError(f"`start_method` must be one of {', '.join(START_METHODS)}, you gave {start_method!r}")


def _shared_environment(nprocs: int, port: int) -> dict[str, str]:
    return {**helpful_defaults(nprocs), **job_environment(nprocs, port)}


def _new_process(
    context: Any, fn: Callable[..., object], args: tuple[Any, ...], env: dict[str, str], daemon: bool, rank: int
) -> tuple[Connection, BaseProcess]:
    name = f"worker{rank}"
    ours, theirs = context.Pipe(duplex=False)
    environment = {**env, **rank_environment(rank, name)}
    process = context.Process(target=child.main, name=name, args=(fn, rank, args, theirs), daemon=daemon)
    try:
        with defaults_in_environment(environment):
            process.start()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        ours.close()
        raise TypeError(_what_cannot_be_pickled(fn, error)) from error
    finally:
        theirs.close()
    return ours, process


def _what_cannot_be_pickled(fn: Callable[..., object], error: Exception) -> str:
    try:
        ForkingPickler.dumps(fn)
    except (pickle.PicklingError, AttributeError, TypeError):
        return (
            f"`fn` {fn!r} cannot be sent to a new process: {error}. Define it at the top level of a module, "
            'or pass start_method="fork"'
        )
    return f'`args` cannot be sent to a new process: {error}. Leave that out, or pass start_method="fork"'


def _exception(cause: Death, pid: int, failure: str | None) -> ProcessRaisedException | ProcessExitedException:
    who = f"process {cause.rank} (pid {pid})"
    if failure is not None:
        return ProcessRaisedException(f"{who} raised an exception; there it was:\n\n{failure}", cause.rank, pid)
    by = signal_name(-cause.code) if cause.code < 0 else None
    return ProcessExitedException(
        f"{who} {how_it_ended(cause.code)}", cause.rank, pid, cause.code, by and by.split()[0]
    )


def _pid(process: BaseProcess) -> int:
    assert process.pid is not None, "it was started"
    return process.pid


def _signal(pid: int, signum: int) -> None:
    try:
        os.killpg(pid, signum)
    except ProcessLookupError:  # it has not come to lead its group yet
        os.kill(pid, signum)
