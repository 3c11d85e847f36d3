"""Restarts of single workers while others go on: the policies ``one`` and ``rest``. A pure state machine, times are given.

    runs --reports its failure--> lingers --time is over--> asked (TERM) --grace is over--> killed (KILL)
    runs, lingers, asked, killed --its process has ended--> waits --its time has come, none of higher rank is asked--> runs

A worker of higher rank under ``rest`` goes from *runs* to *asked* at once, and is started again however it ends. All others are
started again only if they failed, the history allows it, and they would not be left alone: a job whose workers begin and end
together is over when those that go on have left it. One that was refused ends the job as under ``never``.
"""

import signal
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..events import Instruction, Restarting, Signal, Start
from ..root_cause import FailureGraph, WorkerExit, WorkerRecord
from .history import RestartHistory, WorkerFailure
from .rules import RestartPolicy, RestartRules


@dataclass(slots=True)
class _Ending:
    """Worker that is to end: at the time ``at`` it is sent the first of ``signals``; if none is left, it is stuck."""

    at: float
    signals: list[int]
    restarts_at: float | None  # when it is started again, however it ends; None if it has failed by itself


class WorkerRestarts:
    """Workers of one job that are being ended or started again.

    Args:
        policies: of the workers, in order of rank.
        history: of the job.
        settle: seconds that a worker has to end by itself after it reported a failure.
        grace: seconds between TERM and KILL.
        unkillable: seconds after KILL at which a worker is stuck.
        alone: these are all workers of the job, and not those of one of its machines.

    Attributes:
        history: as given.
        waiting: by rank, of workers that have ended and are to be started again: when.
        wake_at: time of the next step that the clock brings; None if there is none.
        stuck: rank of a worker that did not end after KILL; None if there is none.
        given_up: ranks of workers whose policy lets others go on, and that have ended and are not started again.
    """

    def __init__(
        self,
        policies: Sequence[RestartPolicy],
        history: RestartHistory,
        settle: float,
        grace: float,
        unkillable: float,
        alone: bool = True,
    ) -> None:
        self.history = history
        self.waiting: dict[int, float] = {}
        self.wake_at: float | None = None
        self.stuck: int | None = None
        self.given_up: set[int] = set()
        self._policies = [*policies]
        self._alone = alone
        self._settle, self._grace, self._unkillable = settle, grace, unkillable
        self._replaceable = {rank for rank, policy in enumerate(policies) if policy.single}
        self._ending: dict[int, _Ending] = {}

    @staticmethod
    def never(workers: int) -> "WorkerRestarts":
        """Return the restarts of a job that restarts none.

        Args:
            workers: how many it has.
        """
        return WorkerRestarts([RestartPolicy.NEVER] * workers, RestartHistory(RestartRules(), workers), 0.0, 0.0, 0.0)

    @property
    def excused(self) -> set[int]:
        """Ranks of the workers whose failure does not end the job now."""
        return self._replaceable | self._commanded | set(self.waiting)

    def add(self, policy: RestartPolicy) -> None:
        """Add a worker of the next rank."""
        if policy.single:
            self._replaceable.add(len(self._policies))
        self._policies.append(policy)
        self.history.grow()

    def failure_for_all(self, cause: WorkerExit, failures: FailureGraph) -> WorkerFailure | None:
        """Return the failure after which all workers are started again; None if the policies forbid it.

        The worker whose failure caused the others' decides; if its policy is not ``all``, those that failed because of it.

        Args:
            cause: of the end of the job.
            failures: what the workers reported, and how they ended.
        """
        failed = {self._policies[worker.rank] for worker in failures.failed()}
        consequences = RestartPolicy.ALL in failed and RestartPolicy.NEVER not in failed
        if self._policies[cause.rank] is not RestartPolicy.ALL and not consequences:
            return None
        return _failure(failures.worker(cause.rank), cause)

    def look(self, failures: FailureGraph, running: Collection[int], now: float) -> Iterator[Instruction]:
        """Yield what follows from what is known of the workers, and from the time.

        Args:
            failures: what the workers reported, and how they ended.
            running: ranks of those whose processes have not ended.
            now: monotonic seconds.
        """
        if not any(policy.single for policy in self._policies):
            return
        self._note_ends(running)
        for worker in failures.failed():
            if worker.rank in running:
                self._let_linger(worker.rank, now)
            elif worker.rank in self.waiting:
                self._check_others(worker, failures, running)
            elif worker.rank in self._replaceable:
                yield from self._replace(worker, failures, running, now)
        over = set(range(len(self._policies))) - {*running, *self.waiting}
        self.given_up = {rank for rank in over if self._policies[rank].single and not failures.worker(rank).parted}
        yield from self._urge(now)
        failures.excused = self.excused
        if self.stuck is None and not failures.has_failure():
            yield from self._start_due(failures, now)
        self.wake_at = self._next_step()

    @property
    def _commanded(self) -> set[int]:
        """Ranks of those that are being ended and are started again however they end."""
        return {rank for rank, ending in self._ending.items() if ending.restarts_at is not None}

    def _held_from(self) -> int:
        """Return the lowest rank that may be started: a worker waits until those of higher rank have ended that must."""
        return max(self._commanded, default=-1) + 1

    def _start_due(self, failures: FailureGraph, now: float) -> Iterator[Start]:
        held = self._held_from()
        for rank in sorted(rank for rank, at in self.waiting.items() if at <= now and rank >= held):
            del self.waiting[rank]
            self.history.counts[rank] += 1
            failures.replaced(rank)
            yield Start(rank)

    def _next_step(self) -> float | None:
        held = self._held_from()
        times = [ending.at for ending in self._ending.values() if self.stuck is None]
        return min([*times, *(at for rank, at in self.waiting.items() if rank >= held)], default=None)

    def _note_ends(self, running: Collection[int]) -> None:
        for rank in [rank for rank in self._ending if rank not in running]:
            ending = self._ending.pop(rank)
            if ending.restarts_at is not None:
                self.waiting[rank] = ending.restarts_at

    def _let_linger(self, rank: int, now: float) -> None:
        if rank in self._replaceable and rank not in self._ending:
            self._ending[rank] = _Ending(now + self._settle, [signal.SIGTERM, signal.SIGKILL], None)

    def _replace(
        self, worker: WorkerRecord, failures: FailureGraph, running: Collection[int], now: float
    ) -> Iterator[Instruction]:
        rank, end = worker.rank, worker.exit
        assert end is not None, "it does not run"
        rest = [other for other in running if self._policies[rank] is RestartPolicy.REST and other > rank]
        failure = _failure(worker, end)
        self.history.refusal = self._left_alone(worker, {*rest, rank}, failures, running)
        restart = None if self.history.refusal else self.history.decide(failure, tuple(rest), now)
        if restart is None:
            self._replaceable.discard(rank)
            return
        self.waiting[rank] = now + restart.delay
        yield Restarting(restart)
        for other in rest:
            if other not in self._ending or self._ending[other].restarts_at is None:
                self._ending[other] = _Ending(now, [signal.SIGTERM, signal.SIGKILL], now + restart.delay)
        self.history.rounds += self._alone and self._none_stays(failures)  # then they meet anew

    def _none_stays(self, failures: FailureGraph) -> bool:
        """Return whether all workers are to be started again, but for those that have ended well."""
        coming = {*self.waiting, *self._commanded}
        others = [failures.worker(rank) for rank in range(len(self._policies)) if rank not in coming]
        return all(other.exit is not None and not other.failed for other in others)

    def _check_others(self, worker: WorkerRecord, failures: FailureGraph, running: Collection[int]) -> None:
        """Give up a worker that is to be started again soon, if all others have left the job meanwhile."""
        if why := self._left_alone(worker, {worker.rank}, failures, running):
            del self.waiting[worker.rank]
            self._replaceable.discard(worker.rank)
            self.history.withdraw(worker.rank, why)

    def _left_alone(
        self, worker: WorkerRecord, ranks: Collection[int], failures: FailureGraph, running: Collection[int]
    ) -> str:
        """Return why a worker would wait for the others for nothing, started again; empty if it would not.

        Args:
            worker: it has failed.
            ranks: of those that are to be started again now.
            failures: what is known of the others.
            running: ranks of those whose processes have not ended.
        """
        if worker.parted:
            return "it had left the job with all others (by rpc.shutdown), so the others would not meet it again"
        coming = {*ranks, *self.waiting, *self._commanded}
        others = [failures.worker(rank) for rank in range(len(self._policies)) if rank not in coming]
        others = [other for other in others if other.joined or not other.replaces]  # else it is about to come
        gone = [other for other in others if other.parted or other.rank not in running]
        if worker.together and self._alone and others and len(gone) == len(others):
            return "all others have left the job, and it begins only with all of them"
        return ""

    def _urge(self, now: float) -> Iterator[Signal]:
        for rank, ending in self._ending.items():
            if ending.at > now:
                continue
            if not ending.signals:
                self.stuck = rank
                return
            signum = ending.signals.pop(0)
            ending.at = now + (self._grace if ending.signals else self._unkillable)
            yield Signal(rank, signum)


def _failure(worker: WorkerRecord, end: WorkerExit) -> WorkerFailure:
    return WorkerFailure(worker.rank, end.code, worker.error, worker.lost, end.ran)
