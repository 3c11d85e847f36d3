"""Profiles of a job: the stacks of all its workers' threads, many looks a second for some seconds."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from ...base.errors import SerializationError
from ...rpc.observing import SampledStacks, read_record
from ..watching.answers import NoAnswerError
from ..watching.asking import names_of, question
from ..watching.jobs import LocalJob, NoJobError

MOST_PROFILE_SECONDS = 30.0  # for which workers let themselves be sampled
LOOKS_OF_A_WORKER = 100.0  # a second
LOOKS_OF_ALL = 2000.0  # a second: with more than 20 workers, each has fewer. A look costs about 0.1 ms
FEWEST_LOOKS = 5.0
PROFILES_KEPT = 3
SLOW_ANSWER_SECONDS = 10.0  # for a worker to send its samples


class JobProfiles:
    """Profiles that were taken, the latest few. For any thread; one is taken at a time."""

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._kept: dict[int, dict[str, Any]] = {}
        self._numbers = itertools.count(1)

    def take(self, job: LocalJob, seconds: float, timeout: float) -> dict[str, Any]:
        """Sample all workers for some seconds, and return the profile: its number, and of each worker its samples or why not.

        Args:
            job: the job.
            seconds: for so long, up to ``MOST_PROFILE_SECONDS``.
            timeout: seconds that a worker has to say which workers there are.

        Raises:
            NoJobError: another profile is being taken, or the time is not possible.
        """
        if not 0 < seconds <= MOST_PROFILE_SECONDS:
            raise NoJobError(f"a profile takes up to {MOST_PROFILE_SECONDS:g} s; asked for {seconds:g} s")
        if not self._busy.acquire(blocking=False):
            raise NoJobError("a profile is being taken: wait for its end")
        try:
            names = names_of(job, timeout)
            hertz = max(min(LOOKS_OF_A_WORKER, LOOKS_OF_ALL / len(names)), FEWEST_LOOKS)
            with ThreadPoolExecutor(len(names)) as pool:  # all at the same time
                workers = list(pool.map(lambda name: _sampled(job, name, seconds, hertz), names))
            number = next(self._numbers)
            found = self._kept[number] = {"number": number, "job": job.key, "hertz": hertz, "workers": workers}
            while len(self._kept) > PROFILES_KEPT:
                del self._kept[min(self._kept)]
            return found
        finally:
            self._busy.release()

    def get(self, number: int) -> dict[str, Any]:
        """Return a profile that was taken.

        Raises:
            NoJobError: there is none of that number, or it is not kept any more.
        """
        found = self._kept.get(number)
        if found is None:
            raise NoJobError(f"profile {number} is not kept: take another")
        return found


def _sampled(job: LocalJob, worker: str, seconds: float, hertz: float) -> dict[str, Any]:
    request = {"ask": "sample", "seconds": seconds, "hertz": hertz}
    try:
        found = read_record(SampledStacks, question(job, worker, request, seconds + SLOW_ANSWER_SECONDS))
        _check(found)
    except (NoAnswerError, SerializationError) as error:
        return {"worker": worker, "error": str(error)}
    return {**asdict(found), "worker": worker, "error": ""}


def _check(found: SampledStacks) -> None:
    """Refuse samples whose places are in no table: a worker may say anything.

    Raises:
        SerializationError: they are.
    """
    sizes = len(found.threads), len(found.stacks), len(found.times)
    well = all(0 <= place < len(found.frames) for stack in found.stacks for place in stack)
    for run in found.runs:
        well = well and len(run) == 4 and all(0 <= place < size for place, size in zip(run, sizes))
        well = well and 0 < run[3] <= sizes[2] - run[2]
    if not well:
        raise SerializationError("its samples name places that it did not send")
