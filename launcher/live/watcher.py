"""Thread that observes the workers of this launcher about once a second, each at its own socket, as the commands do."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...rpc.observing import Observation
    from .rows import LiveRow

LIVE_LOOK_SECONDS = 1.0
LIVE_PARTS = ("logged", "loops")
PAUSES = 20  # a pause is at least so many times as long as the look before it: looks take 5% of a core at most
LOOK_TIMEOUT = 1.0
END_SECONDS = 3.0  # for the thread to end


class JobWatcher:
    """Watcher of a job. It must be closed.

    Args:
        logs: absolute paths of the workers' logs, by which their records are known.
    """

    def __init__(self, logs: Collection[str]) -> None:
        self._logs = frozenset(logs)
        self._rows: list[LiveRow] = []
        self._before: dict[str, tuple[float, Observation]] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telegrad-live", daemon=True)
        self._thread.start()

    def rows(self) -> list[LiveRow]:
        """Return what was seen last, in order of rank."""
        return self._rows

    def close(self) -> None:
        """End the thread. Closing again does nothing."""
        self._end.set()
        self._thread.join(END_SECONDS)

    def _run(self) -> None:
        took = 0.0
        while not self._end.wait(max(LIVE_LOOK_SECONDS, PAUSES * took)):
            began = time.monotonic()
            self._look()
            took = time.monotonic() - began if self._before else 0.0

    def _look(self) -> None:
        # Here: a launcher whose output is no terminal does without all that this imports.
        from ..watching.jobs import NoJobError, find_jobs
        from ..watching.observing import observe_job

        jobs = [job for job in find_jobs() if any(each.record.log in self._logs for each in job.workers)]
        try:
            seen = [each for job in jobs for each in observe_job(job, LOOK_TIMEOUT, parts=LIVE_PARTS)]
        except (NoJobError, OSError):  # it has ended meanwhile
            return
        if seen:
            self._rows = self._compared(seen, time.monotonic())

    def _compared(self, seen: list[Observation], now: float) -> list[LiveRow]:
        from .rows import live_row

        rows = []
        for each in seen:
            at, before = self._before.get(each.worker, (now, None))
            rows.append(live_row(each, before, now - at))
        self._before = {each.worker: (now, each) for each in seen}
        return rows
