"""Carries a supervisor's instructions out with processes on this machine: one thread, one loop.

Deaths are seen through pidfds in an epoll set, whose ready list keeps the order in which they happened. Each worker
leads a session of its own, so that a terminal's Ctrl-C reaches the launcher only, and reaches the workers once. A
guardian process outlives the launcher and ends the workers if the launcher is killed.
"""

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from ..environment import helpful_defaults, job_environment, own_environment, rank_environment, reserve_port
from ..errors import LogDirError
from ..reports import LOOK_EVERY, Reports
from ..spec import JobSpec
from ..supervisor import (
    Begin,
    Event,
    Exited,
    Failed,
    Instruction,
    Interrupted,
    Phase,
    Signal,
    Start,
    Supervisor,
    TimePassed,
)
from . import leftovers

CHUNK = 1 << 16
COULD_NOT_START = 127  # what a shell exits with
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Display(Protocol):
    """Where the workers' output is shown while the job runs."""

    columns: int  # what is left for a worker's own text
    quiet: bool  # tracebacks are left out

    def write(self, rank: int, data: bytes, now: float) -> None:
        """A worker wrote ``data``."""

    def finish(self, rank: int) -> None:
        """A worker ended: show what it wrote last."""

    def tick(self, now: float) -> None:
        """Show what has waited long enough."""

    @property
    def due(self) -> float | None:
        """When ``tick`` has something to show."""


class LocalEngine:
    """Runs one job. Output goes to ``display`` and, unchanged, to ``<worker>.log`` in ``log_dir``, which exists."""

    def __init__(self, spec: JobSpec, log_dir: Path, display: Display) -> None:
        self.supervisor = Supervisor(len(spec.workers), spec.grace)
        self.left_running: list[int] = []  # what the workers left behind, ended by now
        self.reports = Reports()
        self.spec = spec
        self._log_dir = log_dir
        self._display = display
        self._job = os.urandom(8).hex()
        self._events: deque[Event] = deque([Begin()])
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._pipes: dict[int, int] = {}
        self._logs: dict[int, int] = {}
        self._environment: dict[str, str] = {}

    def run(self) -> Supervisor:
        """Runs the job to its end; returns the supervisor, which knows how it went."""
        with ExitStack() as stack:
            stack.callback(self.reports.close)
            self._selector = stack.enter_context(selectors.DefaultSelector())
            port = stack.enter_context(closing(reserve_port())).getsockname()[1]
            self._environment = self._shared_environment(port)
            stack.callback(self._close_pipes)
            stack.enter_context(_signals_to(self._selector, lambda signum: self._events.append(Interrupted(signum))))
            self._guardian = stack.enter_context(_guardian(self._job))
            stack.callback(self._end_leftovers)
            self._loop()
        return self.supervisor

    def _shared_environment(self, port: int) -> dict[str, str]:
        size = len(self.spec.workers)
        own = {"PYTHONUNBUFFERED": "1", "COLUMNS": str(self._display.columns)}
        return {
            **helpful_defaults(size),
            **own_environment(),
            **own,
            **job_environment(size, port),
            **leftovers.mark(self._job),
        }

    def _loop(self) -> None:
        while self.supervisor.phase is not Phase.FINISHED:
            if self._events:
                self._handle(self._events.popleft())
                continue
            ready = self._selector.select(self._timeout())
            for report in self.reports.read():  # first: whatever else is ready may be a consequence
                self._handle(report)
            for key, _ in ready:
                key.data()
            now = time.monotonic()
            self._show(partial(self._display.tick, now))
            if self.supervisor.wake_at is not None and now >= self.supervisor.wake_at:
                self._events.append(TimePassed())

    def _handle(self, event: Event) -> None:
        if isinstance(event, Failed):
            self._drain(event.rank)  # its traceback is shown, those that follow from it are only logged
        for instruction in self.supervisor.handle(event, time.monotonic()):
            self._carry_out(instruction)
        self._display.quiet = self.supervisor.phase is not Phase.RUNNING

    def _timeout(self) -> float:
        times = [at - time.monotonic() for at in (self.supervisor.wake_at, self._display.due) if at is not None]
        return max(0.0, min([*times, LOOK_EVERY]))

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case Start(rank):
                self._start(rank)
            case Signal(rank, signum):
                self._signal(rank, signum)

    def _signal(self, rank: int, signum: int) -> None:
        process = self._processes.get(rank)
        if process is None or process.returncode is not None:  # never started; its death is told next
            return
        # A request goes to the worker's whole group, as a terminal's would. KILL goes to the worker alone: what it
        # leaves is ended afterwards and more gently, so that helpers that clean up after it (multiprocessing's
        # resource tracker) can.
        if signum == signal.SIGKILL:
            process.kill()
        else:
            os.killpg(process.pid, signum)

    def _start(self, rank: int) -> None:
        name = self.spec.workers[rank]
        self._logs[rank] = _open_log(self._log_dir / f"{name}.log")
        self._pipes[rank], output = os.pipe()
        os.set_blocking(self._pipes[rank], False)
        try:
            process = subprocess.Popen(
                self.spec.command,
                env={**self._environment, **rank_environment(rank, name), **self.reports.environment(rank)},
                pass_fds=[self.reports.descriptor],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            self._received(rank, f"could not be started: {error}\n".encode())
            self._events.append(Exited(rank, COULD_NOT_START))
        else:
            self._watch(rank, process)
        finally:
            os.close(output)

    def _watch(self, rank: int, process: subprocess.Popen[bytes]) -> None:
        self._processes[rank] = process
        self._tell_guardian(process.pid)
        self._selector.register(self._pipes[rank], selectors.EVENT_READ, partial(self._read, rank))
        death = os.pidfd_open(process.pid)
        self._selector.register(death, selectors.EVENT_READ, partial(self._exited, rank, death))

    def _tell_guardian(self, session: int) -> None:
        assert self._guardian.stdin is not None
        try:
            self._guardian.stdin.write(f"{session}\n".encode())
            self._guardian.stdin.flush()
        except BrokenPipeError:  # somebody killed it; the job goes on without
            pass

    def _exited(self, rank: int, death: int) -> None:
        self._selector.unregister(death)
        os.close(death)
        code = self._processes[rank].wait()
        self._drain(rank)
        self._events.append(Exited(rank, code))

    def _drain(self, rank: int) -> None:
        """Takes what is in the pipe now; a grandchild may hold it open and go on writing, so its end is not awaited."""
        for _ in range(16):
            if not self._read(rank):
                break
        self._show(partial(self._display.finish, rank))

    def _read(self, rank: int) -> bool:
        try:
            data = os.read(self._pipes[rank], CHUNK)
        except (BlockingIOError, KeyError):  # nothing now; closed before, in the same round
            return False
        if data:
            self._received(rank, data)
        else:
            self._close_pipe(rank)
        return bool(data)

    def _received(self, rank: int, data: bytes) -> None:
        self._log(rank, data)
        self._show(partial(self._display.write, rank, data, time.monotonic()))

    def _log(self, rank: int, data: bytes) -> None:
        if rank not in self._logs:
            return
        try:
            while data:
                data = data[os.write(self._logs[rank], data) :]
        except OSError as error:  # a full disk must not end the job
            os.close(self._logs.pop(rank))
            name = self.spec.workers[rank]
            print(f"telegrad: the log of {name} ends here, it cannot be written: {error}", file=sys.stderr)

    def _show(self, show: Callable[[], None]) -> None:
        try:
            show()
        except BrokenPipeError:  # `telegrad run ... | head`: end as any other program in a pipeline would
            self._events.append(Interrupted(signal.SIGPIPE))

    def _end_leftovers(self) -> None:
        for process in self._processes.values():
            if process.returncode is None:  # only after an error of our own, or when it cannot be killed
                process.kill()
        self.left_running = leftovers.end(self._job, {process.pid for process in self._processes.values()})
        for rank in list(self._pipes):
            self._drain(rank)

    def _close_pipe(self, rank: int) -> None:
        pipe = self._pipes.pop(rank)
        if pipe in self._selector.get_map():
            self._selector.unregister(pipe)
        os.close(pipe)

    def _close_pipes(self) -> None:
        for rank in list(self._pipes):
            self._close_pipe(rank)
        for log in self._logs.values():
            os.close(log)


def _open_log(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    except OSError as error:
        raise LogDirError(f"the log {str(path)!r} cannot be written: {error.strerror}") from error


@contextmanager
def _guardian(job: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends the job's workers when this process is gone."""
    command = [sys.executable, "-I", "-S", leftovers.__file__, job]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _signals_to(selector: selectors.BaseSelector, tell: Callable[[int], None]) -> Iterator[None]:
    """Has signals that ask this process to end told through the selector. Ignored ones (``nohup``) stay ignored."""
    caught = [signum for signum in ENDING_SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        try:
            handlers = {signum: signal.signal(signum, lambda *_: None) for signum in caught}
            previous = signal.set_wakeup_fd(theirs.fileno())
        except ValueError:  # not the main thread, which alone receives signals
            yield
            return
        selector.register(ours, selectors.EVENT_READ, lambda: _pass_on(ours, caught, tell))
        try:
            yield
        finally:
            selector.unregister(ours)
            signal.set_wakeup_fd(previous)
            for signum, handler in handlers.items():
                signal.signal(signum, handler)


def _pass_on(ours: socket.socket, caught: list[signal.Signals], tell: Callable[[int], None]) -> None:
    for signum in ours.recv(64):
        if signum in caught:
            tell(signum)
