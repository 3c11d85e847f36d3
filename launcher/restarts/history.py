"""History of a job's restarts: decides whether what has failed is started again, and after what time. It reads no clock."""

import signal
from collections import Counter, deque
from dataclasses import dataclass

from .rules import RestartRules

EARLY_SECONDS = 10.0
"""A worker that fails within this time after its start fails *at once*."""

MOST_EARLY = 3
"""A worker that fails at once so often in a row, each time in the same way, is not started again."""

SECOND_RESTART_SECONDS = 0.1
"""Time before the second restart: the first one comes at once. It doubles with each further failure of that worker, ..."""

LONGEST_RESTART_SECONDS = 30.0
"""... up to this time, ..."""

RECOVERED_SECONDS = 60.0
"""... and begins anew when the worker has run for so long."""

EVERYONE = -1  # in the place of a rank, where all workers are started again

OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
"""Signals that come from outside of a program: the same one again does not mean that the program fails by itself."""


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """Failure of one worker.

    Args:
        rank: the worker's rank.
        code: its exit code, or minus the number of the signal that killed it.
        error: last line of the traceback that it reported; empty without.
        lost: names of the workers whose loss caused it.
        ran: seconds from its start to its end.
    """

    rank: int
    code: int
    error: str = ""
    lost: tuple[str, ...] = ()
    ran: float = 0.0

    @property
    def early(self) -> bool:
        """Return whether it failed at once, and by itself."""
        return self.ran < EARLY_SECONDS and not self.lost and -self.code not in OUTSIDE

    @property
    def kind(self) -> tuple[int, str]:
        """Exit code and type of the exception: messages may hold times, ports, paths."""
        return self.code, self.error.partition(":")[0]


@dataclass(frozen=True, slots=True)
class PastRestart:
    """Restart that was decided.

    Args:
        failure: its reason.
        ranks: all workers that are started again because of it.
        delay: seconds until then.
        at: monotonic seconds of the decision.
        number: how many restarts of the failed worker this makes.
    """

    failure: WorkerFailure
    ranks: tuple[int, ...]
    delay: float
    at: float
    number: int


class RestartHistory:
    """History of one job.

    Args:
        rules: of the job.
        workers: how many it has.

    Attributes:
        counts: by rank, how often a worker has been started again.
        restarts: those decided, in order.
        rounds: how often all workers have been started again.
        refusal: why the last failure is not followed by a restart; empty if there is no such reason.
    """

    def __init__(self, rules: RestartRules, workers: int) -> None:
        self.rules = rules
        self.counts: Counter[int] = Counter()
        self.restarts: list[PastRestart] = []
        self.rounds = 0
        self.refusal = ""
        self._workers = workers
        self._most, self._within = rules.limit(workers)
        self._times: deque[float] = deque()
        self._early: dict[int, tuple[tuple[int, str], int]] = {}  # by rank, or EVERYONE: kind of the last failures
        self._streaks: Counter[int] = Counter()  # by rank, or EVERYONE: failures since a long run

    def grow(self) -> None:
        """Note that the job has one worker more."""
        self._workers += 1
        self._most, self._within = self.rules.limit(self._workers)

    def decide(self, failure: WorkerFailure, others: tuple[int, ...], now: float) -> PastRestart | None:
        """Return the restart that follows from a failure; None if the job ends, and then ``refusal`` says why.

        Args:
            failure: of one worker.
            others: ranks of those that are to be started again, too.
            now: monotonic seconds.
        """
        ranks = tuple(sorted({failure.rank, *others}))
        key = EVERYONE if len(ranks) == self._workers else failure.rank  # whose restart it is
        self.refusal = self._too_early(key, failure) or self._too_often(now)
        if self.refusal:
            return None
        self._times.append(now)
        restart = PastRestart(failure, ranks, self._delay(key, failure), now, self.counts[failure.rank] + 1)
        self.restarts.append(restart)
        return restart

    def withdraw(self, rank: int, why: str) -> None:
        """Take back the last restart that followed a failure of a worker, as it has not begun.

        Args:
            rank: of that worker.
            why: becomes ``refusal``.
        """
        self.restarts.remove(next(restart for restart in reversed(self.restarts) if restart.failure.rank == rank))
        self.refusal = why

    def restart_all(self, failure: WorkerFailure, now: float) -> PastRestart | None:
        """Return the restart of all workers that follows from a failure, and count it; None if the job ends.

        Args:
            failure: of one worker.
            now: monotonic seconds.
        """
        restart = self.decide(failure, tuple(range(self._workers)), now)
        if restart is not None:
            self.begin_round()
        return restart

    def begin_round(self) -> None:
        """Count that all workers are started again."""
        self.rounds += 1
        self.counts.update(range(self._workers))

    def _too_early(self, key: int, failure: WorkerFailure) -> str:
        if not failure.early:
            self._early.pop(key, None)
            return ""
        kind, count = self._early.get(key, (failure.kind, 0))
        count = count + 1 if kind == failure.kind else 1
        self._early[key] = failure.kind, count
        if count < MOST_EARLY:
            return ""
        who = "a worker" if key == EVERYONE else "it"
        return f"{who} has failed {count} times in a row within {EARLY_SECONDS:g} s of its start, in the same way"

    def _too_often(self, now: float) -> str:
        while self._within is not None and self._times and self._times[0] <= now - self._within:
            self._times.popleft()
        if len(self._times) < self._most:
            return ""
        time = "" if self._within is None else f" within {self._within:g} s"
        times = f"{self._most} time{'' if self._most == 1 else 's'}{time}"
        return f"this job restarts workers at most {times}; --max-restarts and --within set that"

    def _delay(self, key: int, failure: WorkerFailure) -> float:
        if failure.ran >= RECOVERED_SECONDS:
            del self._streaks[key]
        before = min(self._streaks[key], 20)
        self._streaks[key] += 1
        return min(SECOND_RESTART_SECONDS * 2.0 ** (before - 1), LONGEST_RESTART_SECONDS) if before else 0.0
