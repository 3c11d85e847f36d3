"""Looks at a job, for the page: short ones of all workers, whole ones of one worker, and the end of a worker's log."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from ...rpc.observing import Cause, Observation
from ..watching.jobs import LocalJob, NoJobError
from ..watching.logs import end_of_log
from ..watching.stack import COMMAND_THREAD
from ..watching.texts import place
from ..watching.watched_job import WatchedJob

LOOK_INTERVAL = 1.0  # seconds for which a look serves all browsers
FEW_CALLS = 50  # calls and requests of a worker that a look shows
LOG_END_BYTES = 1 << 16
MOST_STACKS = 5000
LOOK_PARTS = ("calls", "requests", "contexts", "links", "logged", "loops")
GONE_STATE = "gone"  # of a worker whose process has ended
LEFT_OUT = ("threads", "owned", "held", "calls", "requests")  # of a short look: they may be long


class JobLooks:
    """Looks at one job. For any thread; one thread looks at a time.

    Args:
        job: the job.
        timeout: seconds that a worker has to answer.

    Attributes:
        timeout: see there.
    """

    def __init__(self, job: LocalJob, timeout: float) -> None:
        self.timeout = timeout
        self._watched = WatchedJob(job, timeout, LOOK_PARTS)
        self._lock = threading.Lock()
        self._looked = -math.inf  # when, in monotonic seconds
        self._seen: list[Observation] = []
        self._found: dict[tuple[str, ...], tuple[float, list[Observation]]] = {}  # whole looks, and when

    @property
    def job(self) -> LocalJob:
        """The job, with the workers that it had at the last look."""
        return self._watched.job

    def state(self) -> dict[str, Any]:
        """Return what all workers do, in short, and why the job waits."""
        seen = self._look()
        first = self.job.workers[0].record
        return {
            "job": self.job.key,
            "program": first.program,
            "folder": first.folder,
            "ended": self._watched.ended,
            "seconds": time.time() - self.job.began,
            "at": time.time(),
            "workers": [_short(each) for each in seen],
            "why": [] if self._watched.ended else [*_losses(seen), *self._causes(seen)],
        }

    def _causes(self, seen: list[Observation]) -> list[dict[str, Any]]:
        """Return why the job waits, as of the last whole look, without workers that have gone since."""
        gone = {each.worker for each in seen if each.process_state == GONE_STATE}
        return [each for each in self._watched.why.table()["causes"] if each["worker"] not in gone]

    def worker(self, name: str) -> dict[str, Any]:
        """Return all that a worker does; what it did at the last look, if it has gone.

        Raises:
            NoJobError: there is no such worker.
        """
        found = next((each for each in self._look() if each.worker == name), None)
        if found is not None and not found.error:
            found = next(iter(self._whole([name])), found)
        if found is None:
            raise NoJobError(f"the job has no worker {name!r}")
        return asdict(found)

    def stacks(self) -> dict[str, Any]:
        """Return the stacks of the program's threads on all workers, the innermost frame last."""
        seen = [(each.worker, thread) for each in self._whole([], ["threads"]) for thread in each.threads]
        found = [
            {"worker": worker, "thread": thread.name, "stack": [place(frame) for frame in thread.stack]}
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
            text, cut = end_of_log(worker.record.log, LOG_END_BYTES)
        except OSError as error:
            raise NoJobError(f"the log of worker {name!r} cannot be read: {error.strerror or error}") from None
        return {"text": text, "cut": cut}

    def _look(self) -> list[Observation]:
        """Return what the workers do; what they did at the end, if the job has ended."""
        with self._lock:
            if not self._watched.ended and time.monotonic() - self._looked >= LOOK_INTERVAL:
                with suppress(NoJobError):
                    self._seen = _with_gone(self._watched.look(), self._seen)
                self._looked = time.monotonic()
            return self._seen

    def _whole(self, names: Sequence[str], parts: Sequence[str] | None = None) -> list[Observation]:
        """Return whole observations; those of the last look, if the job has ended. One look serves all browsers for a while."""
        key, now = (*names, *(parts or ())), time.monotonic()
        with self._lock:
            if self._watched.ended:
                return self._seen
            self._found = {each: found for each, found in self._found.items() if now - found[0] < LOOK_INTERVAL}
            if key not in self._found:
                self._found[key] = now, self._watched.whole(names, parts)
            return self._found[key][1]

    def close(self) -> None:
        """Close the connections to the job's workers."""
        with self._lock:
            self._watched.close()


def _with_gone(seen: list[Observation], before: list[Observation]) -> list[Observation]:
    """Return the observations, and those of workers that were seen before and are not among them: they have gone."""
    here = {each.worker for each in seen}
    gone = [_gone(each, seen) for each in before if each.worker not in here]
    return sorted([*seen, *gone], key=lambda each: (each.rank, each.worker))


def _losses(seen: list[Observation]) -> list[dict[str, Any]]:
    gone = [each for each in seen if each.process_state == GONE_STATE]
    return [
        asdict(Cause("lost", "lost", each.worker, [each.worker], f"{each.worker!r} has gone: {each.error}", None))
        for each in gone
    ]


def _gone(before: Observation, seen: list[Observation]) -> Observation:
    views = {each.worker: link.state for each in seen for link in each.links if link.to == before.worker}
    why = next(iter(views.values()), "its process has ended")
    found = Observation(before.worker, before.number, before.rank, why, views, host=before.host)
    return replace(found, process_id=before.process_id, process_state=GONE_STATE)


def _short(seen: Observation) -> dict[str, Any]:
    found = asdict(seen)
    for context in found["contexts"]:
        context["context_id"] = str(context["context_id"])  # a number of JavaScript has 53 bits
    short = {name: value for name, value in found.items() if name not in LEFT_OUT}
    return {**short, "calls": found["calls"][:FEW_CALLS], "requests": found["requests"][:FEW_CALLS]}
