"""Workers that do next to nothing: a look that woke them would cost more than all that they do, so they are asked now and then.

To wake an idle process of Python takes about half a millisecond, as nothing of it is in the processor's caches. What the kernel
knows of a process costs it nothing: its state, its memory, its processor time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from ...core.processes import PROC, ProcessStatus, cpu_clock_seconds, parse_status
from ...rpc.observing import Observation
from .jobs import LocalWorker

QUIET_SHARE = 0.001  # of a processor: a worker that uses less is quiet; an idle one takes 0.0002 to 0.0005
QUIET_SECONDS = 10.0  # for which its last answer may serve
MOST_STATUS_BYTES = 4096


class QuietWorkers:
    """What the kernel tells of workers between their answers. It must be closed."""

    def __init__(self) -> None:
        self._meters: dict[str, _Meter] = {}  # by worker

    def close(self) -> None:
        """Close the files."""
        self.keep([])

    def keep(self, workers: Iterable[LocalWorker]) -> None:
        """Forget all workers but these."""
        stems = {each.record.stem for each in workers}
        for name, meter in list(self._meters.items()):
            if meter.stem not in stems:
                self._meters.pop(name).close()

    def unchanged(self, seen: Iterable[Observation]) -> list[Observation]:
        """Return the observations that still hold, each with the memory and the time that its process has now.

        Args:
            seen: the last observation of each worker.
        """
        pairs = ((self._meters.get(each.worker), each) for each in seen if not each.error)
        return [now for meter, each in pairs if meter and (now := meter.unchanged(each))]

    def note(self, workers: Iterable[LocalWorker]) -> None:
        """Note that workers have just answered."""
        for worker in workers:
            name = worker.record.worker
            if name not in self._meters:
                self._meters[name] = _Meter(worker)
            self._meters[name].note()


class _Meter:
    """Meter of one process, with its file kept open: it never tells of a later process of the same number."""

    def __init__(self, worker: LocalWorker) -> None:
        self.stem = worker.record.stem
        self._process_id = worker.record.process_id
        self._file = -1
        with suppress(OSError):
            self._file = os.open(PROC / str(self._process_id) / "stat", os.O_RDONLY | os.O_CLOEXEC)
        self._asked = 0.0  # when it was last asked, in monotonic seconds
        self._used: float | None = None  # processor time then

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def note(self) -> None:
        self._asked, self._used = time.monotonic(), cpu_clock_seconds(self._process_id)

    def unchanged(self, seen: Observation) -> Observation | None:
        elapsed, used, status = time.monotonic() - self._asked, cpu_clock_seconds(self._process_id), self._status()
        if elapsed >= QUIET_SECONDS or used is None or self._used is None or status is None:
            return None
        if status.state not in ("running", "sleeping") or used - self._used > QUIET_SHARE * elapsed:
            return None
        return replace(seen, cpu_seconds=used, memory_bytes=status.memory_bytes)

    def _status(self) -> ProcessStatus | None:
        try:
            return parse_status(os.pread(self._file, MOST_STATUS_BYTES, 0))
        except OSError:
            return None
