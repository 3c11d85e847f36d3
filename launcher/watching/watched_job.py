"""``WatchedJob``: a job that is observed again and again, until it has ended."""

from __future__ import annotations

from ...rpc.observing import Observation
from .jobs import LocalJob, NoJobError, choose_job, find_jobs
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
            self.job = self._find()
            self.seen = observe_job(self.job, self._timeout)
        except NoJobError:
            self.ended = True
            raise
        return self.seen

    def _find(self) -> LocalJob:
        """Return the job as it is now: when its workers have come together, they get another id, one after the other.

        Raises:
            NoJobError: it has ended.
        """
        processes = {each.record.stem for each in self.job.workers}
        found = [job for job in find_jobs() if processes & {each.record.stem for each in job.workers}]
        joined = [job for job in found if any(each.record.joined for each in job.workers)]
        return (joined or found or [choose_job(self.job.key)])[0]
