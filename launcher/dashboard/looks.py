"""Looks at a job, for the page: short ones of all workers, whole ones of one worker, and the end of a worker's log."""

from __future__ import annotations

import os
import stat
import threading
import time
from dataclasses import asdict
from typing import Any

from ...rpc.observing import Observation, ObservedFrame, explain
from ..watching.jobs import LocalJob, NoJobError, choose_job
from ..watching.observing import observe_job
from ..watching.stack import COMMAND_THREAD

LOOK_INTERVAL = 1.0  # seconds for which a look serves all browsers
FEW_CALLS = 50  # calls and requests of a worker that a look shows
LOG_END_BYTES = 1 << 16
MOST_STACKS = 5000
LEFT_OUT = ("threads", "owned", "held", "calls", "requests")  # of a short look: they may be long


class JobLooks:
    """Looks at one job. For any thread; one thread looks at a time.

    Args:
        job: the job.
        timeout: seconds that a worker has to answer.
    """

    def __init__(self, job: LocalJob, timeout: float) -> None:
        self.job = job
        self._timeout = timeout
        self._lock = threading.Lock()
        self._seen: list[Observation] = []
        self._looked = 0.0  # when, in monotonic seconds
        self._ended = False

    def state(self) -> dict[str, Any]:
        """Return what all workers do, in short, and why the job waits."""
        with self._lock:
            self._look()
            seen, ended = self._seen, self._ended
        first = self.job.workers[0].record
        return {
            "job": self.job.key,
            "program": first.program,
            "folder": first.folder,
            "ended": ended,
            "seconds": time.time() - self.job.began,
            "at": time.time(),
            "workers": [_short(each) for each in seen],
            "why": [] if ended else [_cause(each) for each in explain(seen).table()["causes"]],
        }

    def worker(self, name: str) -> dict[str, Any]:
        """Return all that was observed of a worker at the last look.

        Raises:
            NoJobError: there is no such worker.
        """
        with self._lock:
            self._look()
            found = next((each for each in self._seen if each.worker == name), None)
        if found is None:
            raise NoJobError(f"the job has no worker {name!r}")
        return asdict(found)

    def stacks(self) -> dict[str, Any]:
        """Return the stacks of the program's threads on all workers at the last look, the innermost frame last."""
        with self._lock:
            self._look()
            seen = [(each.worker, thread) for each in self._seen for thread in each.threads]
        found = [
            {"worker": worker, "thread": thread.name, "stack": [_frame(frame) for frame in thread.stack]}
            for worker, thread in seen
            if thread.stack and thread.name != COMMAND_THREAD and (thread.at or thread.serves or thread.main)
        ]
        return {"stacks": found[:MOST_STACKS]}

    def log(self, name: str) -> dict[str, Any]:
        """Return the end of what a worker of this machine has written.

        Raises:
            NoJobError: there is no such worker here, or no log of it.
        """
        worker = self.job.worker(name)
        if worker is None or not worker.record.log:
            raise NoJobError(f"no log of worker {name!r} is known: only telegrad run keeps logs, each on its machine")
        try:
            return _end_of(worker.record.log)
        except OSError as error:
            raise NoJobError(f"the log of worker {name!r} cannot be read: {error.strerror or error}") from None

    def _look(self) -> None:
        # lock held
        if self._ended or time.monotonic() - self._looked < LOOK_INTERVAL:
            return
        try:
            self.job = choose_job(self.job.key)
            self._seen = observe_job(self.job, self._timeout)
        except NoJobError:
            self._ended = True
        self._looked = time.monotonic()


def _short(seen: Observation) -> dict[str, Any]:
    found = asdict(seen)
    short = {name: value for name, value in found.items() if name not in LEFT_OUT}
    return {**short, "calls": found["calls"][:FEW_CALLS], "requests": found["requests"][:FEW_CALLS]}


def _cause(cause: dict[str, Any]) -> dict[str, Any]:
    return {**cause, "chain": [f"{each['worker']}: {each['text']}{_place(each['at'])}" for each in cause["chain"]]}


def _place(at: dict[str, Any] | None) -> str:
    return f", in {at['function']} at {at['file']}:{at['line']}" if at else ""


def _frame(frame: ObservedFrame) -> str:
    return f"{frame.function} at {frame.file}:{frame.line}"


def _end_of(path: str) -> dict[str, Any]:
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no file")
        file.seek(max(status.st_size - LOG_END_BYTES, 0))
        text = file.read(LOG_END_BYTES).decode(errors="replace")
    return {"text": text, "cut": max(status.st_size - LOG_END_BYTES, 0)}
