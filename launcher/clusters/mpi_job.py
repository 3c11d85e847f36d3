"""Job of ``mpiexec``, followed by what it writes: workers' lines behind their ranks, their reports, and its own messages."""

import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TextIO

from ..console import WorkerConsole
from ..engines import job_processes
from ..engines.ending_signals import ending_signals
from ..engines.log import WorkerLog
from ..engines.starter import guardian
from ..environment import job_mark
from ..events import Failed, Joined, Left, Lost
from ..progress import Progress
from ..result import JobResult, WorkerResult
from ..root_cause import FailureGraph, WorkerExit
from ..worker_files import ReportFile
from .mpi_reports import REPORT_MARK

MPI_LOOK_SECONDS = 1.0
RANKED = re.compile(rb"\[(\d+)\] ?")
DIED = re.compile(rb"=\s+PID (\d+) RUNNING AT \S+\s*\n=\s+EXIT CODE: (\d+)")


class MpiJob:
    """One job.

    Args:
        workers: the workers' names, in order of rank.
        log_dir: existing folder for ``<worker>.log`` of each worker, and ``mpiexec.log``.
        tell: called with each line about the job's start, and every minute in which no worker writes.
        stream: where output is shown; None means standard output.
    """

    def __init__(
        self, workers: Sequence[str], log_dir: Path, tell: Callable[[str], None], stream: TextIO | None = None
    ) -> None:
        self._began = time.monotonic()
        self._workers = workers
        self._log_dir = log_dir
        self._console = WorkerConsole(workers, stream)
        self._progress = Progress(len(workers), tell, self._began)
        self._failures = FailureGraph()
        self._resources = ExitStack()
        self._reports = self._resources.enter_context(closing(ReportFile()))
        self._logs = [self._log(name) for name in workers]
        self._own_log = self._log("mpiexec")
        self._own_words = b""
        self._ranks: dict[int, int] = {}  # by process id
        self._codes: dict[int, int] = {}  # exit codes that workers reported, by rank
        self._unread = b""
        self._signals: list[int] = []

    def run(self, command: list[str], environment: dict[str, str]) -> JobResult:
        """Run ``command`` to its end, and return how the workers ended."""
        job = os.urandom(8).hex()
        with self._resources as stack:
            stack.enter_context(guardian(job, ""))
            mpiexec = stack.enter_context(
                subprocess.Popen(
                    command,
                    env={**environment, **job_mark(job)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # a terminal's Ctrl-C comes through this process only
                )
            )
            try:
                self._follow(mpiexec, stack)
                code = mpiexec.wait()
            finally:
                mpiexec.kill()
                left = job_processes.end(job, {mpiexec.pid})
        return self._result(code, left)

    def take(self, data: bytes, now: float) -> None:
        """Show, log and note what mpiexec has written at the time ``now``."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._line(line, now)

    def _follow(self, mpiexec: "subprocess.Popen[bytes]", stack: ExitStack) -> None:
        assert mpiexec.stdout is not None
        output = mpiexec.stdout.fileno()
        selector = stack.enter_context(selectors.DefaultSelector())
        signals = stack.enter_context(ending_signals())
        stack.enter_context(signals.to(selector, lambda signum: self._signalled(mpiexec, signum)))
        selector.register(output, selectors.EVENT_READ)
        while True:
            ready = {key.fd: key.data for key, _ in selector.select(MPI_LOOK_SECONDS)}
            if output in ready:
                if not (data := os.read(output, 1 << 16)):
                    break
                self.take(data, time.monotonic())
            for action in filter(None, ready.values()):
                action()
            self._console.tick(time.monotonic())
            if not (self._failures.has_failure() or self._signals):
                self._progress.tick(time.monotonic(), self._console.wrote_at)
        self.take(b"\n" * bool(self._unread), time.monotonic())

    def _signalled(self, mpiexec: "subprocess.Popen[bytes]", signum: int) -> None:
        mpiexec.send_signal(signal.SIGKILL if self._signals else signum)
        self._signals.append(signum)

    def _line(self, line: bytes, now: float) -> None:
        found = RANKED.match(line)
        if found is None or int(found[1]) >= len(self._workers):
            self._own_log.write(line + b"\n")
            self._own_words += line + b"\n"
            return
        rank = int(found[1])
        text, mark, report = line[found.end() :].partition(REPORT_MARK.encode())
        if mark:
            self._note(rank, report, now)
        if text or not mark:
            self._logs[rank].write(text + b"\n")
            self._console.write(rank, text + b"\n", now)

    def _note(self, rank: int, line: bytes, now: float) -> None:
        facts = json.loads(line)
        if facts["kind"] == "began":
            self._ranks[facts["pid"]] = rank
            self._progress.started(rank, now)
        elif facts["kind"] == "ended":
            self._exited(rank, facts["code"], now)
        else:
            os.write(self._reports.descriptor, line + b"\n")
            self._read_reports(now)
        self._console.quiet = self._failures.has_failure()

    def _read_reports(self, now: float) -> None:
        for report in self._reports.read():
            match report:
                case Joined(rank, name):
                    self._failures.joined(rank, name)
                    self._progress.joined(rank, name)
                case Lost(_, worker, reason):
                    self._progress.lost(worker, reason, now)
                case Left(rank, shut_down, agreed):
                    self._failures.left(rank, shut_down, agreed, asked=False)
                case Failed(rank, lost):
                    self._failures.raised(rank, lost)

    def _exited(self, rank: int, code: int, now: float, by_launcher: bool = False) -> None:
        self._codes[rank] = code
        self._progress.ended(rank)
        self._failures.exited(WorkerExit(rank, code, now, by_launcher))

    def _result(self, code: int, left: list[int]) -> JobResult:
        """Return the result. A worker that mpiexec names died by itself; it killed the others that said nothing."""
        now = time.monotonic()
        for pid, number in DIED.findall(self._own_words):
            if (rank := self._ranks.get(int(pid))) is not None and rank not in self._codes:
                self._exited(rank, _end(int(number)), now)
        for rank in set(range(len(self._workers))) - self._codes.keys():
            raised = self._failures.worker(rank).raised
            ended = 1 if raised else 0 if code == 0 else -signal.SIGKILL
            self._exited(rank, ended, now, by_launcher=bool(code) and not raised)
        workers = tuple(map(self._worker, range(len(self._workers))))
        cause = None if self._signals else self._failures.root_cause()
        return JobResult(
            exit_code=128 + self._signals[0] if self._signals else code,
            cause=workers[cause.rank] if cause else None,
            interrupted_by=self._signals[0] if self._signals else None,
            workers=workers,
            log_dir=self._log_dir,
            seconds=now - self._began,
            left_running=tuple(left) if code == 0 else (),
        )

    def _worker(self, rank: int) -> WorkerResult:
        record = self._failures.worker(rank)
        assert record.exit is not None, "each has got one"
        return WorkerResult(
            self._workers[rank],
            rank,
            code=record.exit.code,
            ended_by_launcher=record.exit.by_launcher,
            after=record.exit.at - self._began,
            log=self._log_dir / f"{self._workers[rank]}.log",
            traceback=self._reports.tracebacks.get(rank, ""),
            lost=tuple(self._failures.launched_name(name, self._workers) for name in record.lost),
            ended_early=record.ended_early,
        )

    def _log(self, name: str) -> WorkerLog:
        return self._resources.enter_context(closing(WorkerLog(self._log_dir / f"{name}.log")))


def _end(code: int) -> int:
    """Return the exit code of a process for which mpiexec gives this number: a signal's, or one above it."""
    return -code if 2 < code < signal.SIGRTMIN else code
