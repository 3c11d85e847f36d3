"""``WatchedJob``: a job that is observed again and again, until it has ended.

Most looks are short: numbers and a few lists, without stacks and references. Why the job waits takes whole looks, so they are
rare: when a call waits and nothing goes on, and else now and then. They take a small part of the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from ...base.job_records import records_stamp
from ...rpc.observing import Explanation, Observation, explain
from .asking import Asker
from .jobs import LocalJob, NoJobError, choose_job, find_jobs
from .observing import observe_job
from .quiet import QuietWorkers

WAIT_SECONDS = 1.0  # of a call: then it is asked why
WHY_SECONDS = 5.0  # between two whole looks, at least
OTHERWISE_SECONDS = 60.0  # between two whole looks if no call waits: threads may wait for one another
WHY_PAUSES = 50  # a pause between whole looks is at least so many times as long as the look before
CURVE_SECONDS = 5.0  # between two looks at what the workers logged


class WatchedJob:
    """Job that is observed again and again. Not for several threads at a time.

    Args:
        job: the job.
        timeout: seconds that a worker has to answer.
        parts: the lists of an observation that short looks tell, as for ``rpc.observe``.

    Attributes:
        job: the job, with the workers that it had at the last look.
        seen: the observations of the last look; those of an ended job stay.
        why: why the job waits, as of the last whole look.
        ended: it has ended.
    """

    def __init__(self, job: LocalJob, timeout: float, parts: Sequence[str] = ()) -> None:
        self.job = job
        self.seen: list[Observation] = []
        self.why = Explanation([], [])
        self.ended = False
        self._timeout = timeout
        self._parts = parts
        self._asker = Asker()
        self._quiet = QuietWorkers()
        self._stamp: tuple[int, ...] = ()
        self._explained: tuple[object, ...] = ()  # how far the workers were at the last whole look
        self._explained_at = -math.inf
        self._why_seconds = 0.0  # that the last whole look took
        self._curves_at = -math.inf

    def look(self) -> list[Observation]:
        """Observe its workers, and return what they do.

        Raises:
            NoJobError: it has ended, or its workers run another version.
        """
        try:
            self._find_workers()
            self.seen = self._short_look() if self.seen else []
            if not self.seen or self._is_why_due():
                self._whole_look()
        except NoJobError:
            self.ended = True
            self.close()
            raise
        return self.seen

    def whole(self, names: Collection[str] = (), parts: Sequence[str] | None = None) -> list[Observation]:
        """Return what some workers tell now.

        Args:
            names: the workers; all, if there are none.
            parts: the lists that are wanted; all by default.

        Raises:
            NoJobError: it has ended, or has no such worker.
        """
        return observe_job(self.job, self._timeout, names, parts, self._asker)

    def close(self) -> None:
        """Close the connections to its workers. It may be used again."""
        self._asker.close()

    def _find_workers(self) -> None:
        """Read the workers' records, if one has changed or a worker did not answer."""
        stamp = records_stamp()
        if stamp != self._stamp or any(each.error for each in self.seen):
            self.job = self._find()
            self._asker.keep(self.job.workers)
            self._stamp = stamp

    def _find(self) -> LocalJob:
        """Return the job as it is now: when its workers have come together, they get another id, one after the other.

        Raises:
            NoJobError: it has ended.
        """
        processes = {each.record.stem for each in self.job.workers}
        found = [job for job in find_jobs() if processes & {each.record.stem for each in job.workers}]
        joined = [job for job in found if any(each.record.joined for each in job.workers)]
        return (joined or found or [choose_job(self.job.key)])[0]

    def _short_look(self) -> list[Observation]:
        """Ask the workers that may have done something since the last look, and return what all do."""
        if len(self.job.workers) != self.job.workers[0].record.world_size:  # the others are asked through these
            return self.whole((), self._parts)
        kept = self._quiet.unchanged(self.seen)
        here = {each.record.worker for each in self.job.workers}
        kept = [each for each in kept if each.worker in here]
        names = here - {each.worker for each in kept}
        found = self._asked(names) if names else []
        self._quiet.note(each for each in self.job.workers if each.record.worker in names)
        return sorted([*kept, *found], key=lambda each: (each.rank, each.worker))

    def _asked(self, names: Collection[str]) -> list[Observation]:
        """Return what some workers tell now. Curves are long: they are asked for now and then, and kept."""
        now = time.monotonic()
        if "logged" not in self._parts or now - self._curves_at >= CURVE_SECONDS:
            self._curves_at = now
            return self.whole(names, self._parts)
        logged = {each.worker: each.logged for each in self.seen}
        found = self.whole(names, [each for each in self._parts if each != "logged"])
        return [replace(each, logged=logged.get(each.worker, [])) for each in found]

    def _whole_look(self) -> None:
        began = time.monotonic()
        whole = self.whole()
        self.why = explain(whole)
        self._quiet.note(self.job.workers)
        # The page and the table show short looks; the rest would be copied at each of them.
        self.seen = [replace(each, threads=[], owned=[], held=[]) for each in whole]
        self._explained, self._explained_at = _progress(self.seen), time.monotonic()
        self._why_seconds = self._explained_at - began

    def _is_why_due(self) -> bool:
        """Return whether a whole look is due. Where the job has gone on and does not wait, nothing is to be explained."""
        same = _progress(self.seen) == self._explained
        waits = any(each.error or each.in_shutdown or each.oldest_call_seconds > WAIT_SECONDS for each in self.seen)
        if not (same or waits):
            self.why = Explanation([], [each.worker for each in self.seen])
        pause = OTHERWISE_SECONDS if same or not waits else WHY_SECONDS
        return time.monotonic() - self._explained_at >= max(pause, WHY_PAUSES * self._why_seconds)


def _progress(seen: Sequence[Observation]) -> tuple[object, ...]:
    """Return how far workers are: what changes when one makes or serves a call, falls silent, or begins to leave."""
    return tuple(
        (each.worker, each.calls_made, each.requests_accepted, bool(each.error), each.in_shutdown) for each in seen
    )
