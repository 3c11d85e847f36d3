"""``WatchedJob``: a job that is observed again and again, until it has ended."""

from __future__ import annotations

from ...rpc.observing import Observation
from .jobs import LocalJob, NoJobError, choose_job
from .observing import observe_job


class WatchedJob:
    """Job that is observed again and again. Not for several threads at a time.

    Args:
        job: the job.
        timeout: seconds that a worker has to answer.

    Attributes:
        job: the job, with the workers that it had at the last look.
        seen: the observations of the last look; those of an ended job stay.
        ended: it has ended.
    """

    def __init__(self, job: LocalJob, timeout: float) -> None:
        self.job = job
        self.seen: list[Observation] = []
        self.ended = False
        self._timeout = timeout

    def look(self) -> list[Observation]:
        """Observe its workers, and return what they do.

        Raises:
            NoJobError: it has ended, or its workers run another version.
        """
        try:
            self.job = choose_job(self.job.key)
            self.seen = observe_job(self.job, self._timeout)
        except NoJobError:
            self.ended = True
            raise
        return self.seen
