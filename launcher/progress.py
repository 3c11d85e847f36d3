"""Words of the launcher while a job runs: how far its start is, a sign of life while no worker writes, lost workers."""

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby

from .spec import role_of

STEP_SECONDS = 5.0
"""Least time between two lines about a start that takes long."""

SILENT_SECONDS = 60.0
"""Time without output of any worker after which the launcher says that the job runs."""


def report(text: str) -> None:
    """Print a line of the launcher itself, beside what workers write. Without a reader it is dropped."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"telegrad: {text}", file=sys.stderr, flush=True)


def counted(workers: int) -> str:
    """Return a number of workers in words: ``1 worker``, ``2 workers``."""
    return f"{workers} worker{'' if workers == 1 else 's'}"


def listed(workers: Sequence[str]) -> str:
    """Return the names of workers, in order of rank, in words: ``ps, trainer0 to trainer63``."""
    roles = [list(names) for _, names in groupby(workers, role_of)]
    return ", ".join(f"{names[0]} to {names[-1]}" if len(names) > 2 else ", ".join(names) for names in roles)


LOSS_SECONDS = 1.0
"""Time after the report of a loss in which the lost worker's exit is seen, if it is one of this launcher's that died."""


class Progress:
    """Progress of one job, told in lines. It reads no clock; a time is in monotonic seconds.

    Args:
        workers: number of workers.
        tell: called with each line.
        now: time at which the job begins.
    """

    def __init__(self, workers: int, tell: Callable[[str], None], now: float) -> None:
        self._size = workers
        self._tell = tell
        self._started: set[int] = set()
        self._joined: dict[int, str] = {}  # names under which workers joined
        self._ended: set[int] = set()
        self._lost: dict[str, tuple[float, str]] = {}  # by name: when the first worker reported it, and why
        self._told = ""  # the last line about the start
        self._told_at = self._heard_at = now

    def started(self, rank: int, now: float) -> None:
        """Note that a worker's process has started, perhaps again."""
        self._started.add(rank)
        self._ended.discard(rank)
        self._joined.pop(rank, None)
        self.tick(now, self._heard_at)

    def joined(self, rank: int, name: str) -> None:
        """Note that a worker has called ``init_rpc`` as ``name``, and has found the others."""
        self._joined[rank] = name

    def ended(self, rank: int) -> None:
        """Note that a worker's process has ended."""
        self._ended.add(rank)

    def growing(self, workers: int) -> None:
        """Note how many workers the job has, with those that come."""
        self._size = workers

    def tell(self, line: str) -> None:
        """Tell of a change of the workers."""
        self._tell(line)

    def restarting(self, ranks: Sequence[int], line: str) -> None:
        """Tell of a restart; the loss of these workers is not told as well."""
        self._lost |= {self._joined[rank]: (math.inf, "") for rank in ranks if rank in self._joined}
        self._tell(line)

    def lost(self, worker: str, reason: str, now: float) -> None:
        """Note that a worker has lost another. Each loss is told once, and none of a process whose exit is seen here.

        Args:
            worker: the name of the lost one.
            reason: why it counts as lost.
            now: the time.
        """
        self._lost.setdefault(worker, (now + LOSS_SECONDS, reason))

    def tick(self, now: float, wrote_at: float) -> None:
        """Tell what is due.

        Args:
            now: the time.
            wrote_at: when a worker wrote last.
        """
        self._heard_at = max(self._heard_at, wrote_at)
        self._tell_losses(now)
        line = self._start()
        if line not in ("", self._told) and now >= self._told_at + STEP_SECONDS:
            self._told, self._told_at = line, now
            self._tell(line)
        elif now >= max(self._heard_at, self._told_at) + SILENT_SECONDS:
            self._told_at = now
            self._tell(self._life(now - self._heard_at))

    def _tell_losses(self, now: float) -> None:
        due = [worker for worker, (at, _) in self._lost.items() if at <= now]
        running = {name for rank, name in self._joined.items() if rank not in self._ended}
        for worker in due:
            _, reason = self._lost[worker]
            self._lost[worker] = math.inf, reason
            if worker in running or worker not in self._joined.values():
                runs = ", and its process runs" if worker in running else ""
                self._tell(f"worker {worker!r} is lost{runs}: {reason}")

    def _start(self) -> str:
        """Return how far the start is; empty if all is said about it."""
        if len(self._started) < self._size:
            return f"{len(self._started)} of {counted(self._size)} have started"
        if len(self._joined) == self._size:
            return f"all {counted(self._size)} have joined the job" if self._told else ""
        return self._joining() if self._joined and not self._ended else ""

    def _joining(self) -> str:
        return f"{len(self._joined)} of {counted(self._size)} have joined the job"

    def _life(self, silence: float) -> str:
        running = self._size - len(self._ended)
        ended = f", {len(self._ended)} ended" if self._ended else ""
        joining = f"; {self._joining()}" if 0 < len(self._joined) < self._size else ""
        return (
            f"{counted(running)} run{'s' * (running == 1)}{ended}, without output for {silence / 60:.0f} min{joining}"
        )
