"""Workers that do next to nothing: a look that woke them would cost more than all that they do, so they are asked now and then.

To wake an idle process of Python takes about half a millisecond, as nothing of it is in the processor's caches. What the kernel
knows of a process costs it nothing: its state, its memory, its processor time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...base.job_records import JobRecord
from ...base.processes import cpu_clock_seconds, process_status
from ...rpc.observing import Observation
from .jobs import LocalWorker

# Of a processor, and of a second more, for what an answer takes: a worker that uses less is quiet. An idle one takes 0.0002 to
# 0.0005.
QUIET_SHARE = 0.001
ANSWER_HOLDS_SECONDS = 10.0  # for which its last answer may serve


class QuietWorkers:
    """Last answers of workers, and the numbers of their processes then: these tell for how long an answer holds."""

    def __init__(self) -> None:
        self._meters: dict[str, _Meter] = {}  # by worker

    def note(self, workers: Iterable[LocalWorker]) -> None:
        """Note that workers have just answered."""
        for each in workers:
            record = each.record
            self._meters[record.worker] = _Meter(record, time.monotonic(), cpu_clock_seconds(record.process_id))

    def unchanged(self, seen: Iterable[Observation]) -> list[Observation]:
        """Return the observations that still hold, each with the memory and the time that its process has now.

        Args:
            seen: the last observation of each worker.
        """
        pairs = ((self._meters.get(each.worker), each) for each in seen if not each.error)
        return [now for meter, each in pairs if meter and (now := meter.unchanged(each))]


@dataclass(frozen=True, slots=True)
class _Meter:
    """Worker at its last answer: its record, when that was in monotonic seconds, and the processor time that it had used."""

    record: JobRecord
    asked: float
    used: float | None

    def unchanged(self, seen: Observation) -> Observation | None:
        elapsed, used = time.monotonic() - self.asked, cpu_clock_seconds(self.record.process_id)
        if (
            elapsed >= ANSWER_HOLDS_SECONDS
            or used is None
            or self.used is None
            or used - self.used > QUIET_SHARE * (elapsed + 1.0)
        ):
            return None
        status = process_status(self.record.process_id)
        if status is None or status.start != self.record.process_start or status.state not in ("running", "sleeping"):
            return None
        return replace(seen, cpu_seconds=used, memory_bytes=status.memory_bytes)
