"""Supervision of a job as a state machine: events and the time in, instructions out; it touches no process.

    new --begin--> running --first failure--> settling --its cause has ended, or time is over-->
        ending --grace over--> killing --every worker has ended, or time is over--> finished

*Settling* waits for the worker that caused the failure to end by itself: a worker that fails says goodbye to its peers first,
and one of them may exit sooner because of it. *Ending* asks every running worker to end (TERM, or INT when the user pressed
Ctrl-C); an interruption leads there at once. *Killing* sends KILL. The job is finished when every worker has ended, or when
one survives KILL (it is stuck in the kernel, and waiting would not help).

A running job may restart single workers (``restarts/workers.py``): their failures do not end it.
"""

import enum
import signal

from ..base.errors import IllegalEventError
from .events import (
    Abandoned,
    Added,
    Begin,
    Event,
    Exited,
    Failed,
    Instruction,
    Interrupted,
    Joined,
    Left,
    Report,
    Signal,
    Start,
    Wake,
)
from .restarts.history import PastRestart, WorkerFailure
from .restarts.rules import RestartPolicy
from .restarts.workers import WorkerRestarts
from .root_cause import FailureGraph, WorkerExit

SETTLE_SECONDS = 5.0
"""Time that the cause of a failure has to end by itself, once the failure is known."""

UNKILLABLE_SECONDS = 1.0
"""Time after KILL at which a worker that still runs is given up."""


class JobPhase(enum.Enum):
    """State of the job."""

    NEW = "new"
    RUNNING = "running"
    SETTLING = "settling"
    ENDING = "ending"
    KILLING = "killing"
    FINISHED = "finished"


class Supervisor:
    """Supervisor of workers that must all succeed, some perhaps after restarts.

    Reports of workers must be handed in before the exits that follow from them.

    Args:
        size: how many workers there are.
        grace: seconds between asking workers to end and killing them.
        restarts: of single workers while the job runs; None for none.
    """

    def __init__(self, size: int, grace: float, restarts: WorkerRestarts | None = None) -> None:
        self.size = size
        self.grace = grace
        self.phase = JobPhase.NEW
        self.restarts = restarts or WorkerRestarts.never(size)
        self.failures = FailureGraph()
        self.interrupted_by: int | None = None  # set only if no worker had failed before
        self.told_to_end = False  # by the user, also after a failure
        self.abandoned = ""  # why the job ends, if no worker of this node had failed before
        self._running: set[int] = set()
        self._started: dict[int, float] = {}  # by rank: when its process was started, the last time
        self._sent: set[tuple[int, int]] = set()  # (rank, signal)
        self._phase_ends_at: float | None = None

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """Return what to do about an event at the time ``now`` (monotonic seconds).

        Raises:
            IllegalEventError: the event cannot happen now: before ``Begin`` or a second one, after the end of the job, or of
                a worker that is not running.
        """
        self._check(event)
        match event:
            case Begin():
                self.phase = JobPhase.RUNNING
                return [self._start(rank, now) for rank in range(self.size)]
            case Added(worker, policy):
                return self._add(worker, policy, now)
            case Interrupted(signum):
                return self._interrupted(signum, now)
            case Abandoned(reason):
                return self._abandon(reason, now)
            case Wake():
                return self._time_passed(now)
            case _:
                self._record(event, now)
                return self._proceed(now)

    @property
    def wake_at(self) -> float | None:
        """Time at which to send ``Wake``, at the latest; None if nothing waits for it."""
        return self.restarts.wake_at if self.phase is JobPhase.RUNNING else self._phase_ends_at

    @property
    def survivors(self) -> bool:
        """Return whether workers run: of a finished job, those that outlived KILL."""
        return bool(self._running)

    @property
    def goes_on(self) -> bool:
        """Return whether the job runs, and no failure ends it."""
        return self.phase is JobPhase.RUNNING and not self.failures.has_failure()

    def present(self, rank: int) -> bool:
        """Return whether a worker runs, or is to be started again."""
        return rank in self._running or rank in self.restarts.waiting

    @property
    def cause(self) -> WorkerExit | None:
        """Failure that ended the job; None if all went well or the user ended it."""
        return None if self.interrupted_by is not None or self.abandoned else self.failures.root_cause()

    @property
    def exit_code(self) -> int:
        """Exit code of the launcher: the cause's, 128 + the number if that was a signal, 1 if it has none of its own."""
        if self.interrupted_by is not None:
            return 128 + self.interrupted_by
        if (cause := self.cause) is None:
            return 1 if self.abandoned else 0
        return 128 - cause.code if cause.killed else max(cause.code, 1)

    @property
    def failure_for_all(self) -> WorkerFailure | None:
        """Failure after which the policies start all workers again, in a further round; None if there is none."""
        return None if (cause := self.cause) is None else self.restarts.failure_for_all(cause, self.failures)

    @property
    def may_begin_again(self) -> bool:
        """Return whether nothing forbids a further round: the user, a worker that cannot be killed, one restarted too often."""
        return not (self.told_to_end or self.survivors or self.restarts.history.refusal)

    def begin_again(self, now: float) -> PastRestart | None:
        """Return the restart of all workers that follows the end of the job, and count it; None if the job is over."""
        failure = self.failure_for_all
        if failure is None or not self.may_begin_again:
            return None
        return self.restarts.history.restart_all(failure, now)

    def _check(self, event: Event) -> None:
        rank = getattr(event, "rank", None)
        begins = isinstance(event, Begin)
        if begins != (self.phase is JobPhase.NEW) or self.phase is JobPhase.FINISHED:
            raise IllegalEventError(f"{event} cannot happen to a job that is {self.phase.value}")
        if rank is not None and rank not in self._running:
            raise IllegalEventError(f"{event} cannot happen: of {self.size} workers only {self._running} are running")

    def _add(self, rank: int, policy: RestartPolicy, now: float) -> list[Instruction]:
        if not self.goes_on or self.present(rank) or rank > self.size:
            raise IllegalEventError(f"worker {rank} of {self.size} cannot be added to a job that is {self.phase.value}")
        if rank == self.size:
            self.size += 1
            self.restarts.add(policy)
        else:
            self.failures.replaced(rank)
        return [self._start(rank, now)]

    def _record(self, event: Report | Exited, now: float) -> None:
        match event:
            case Exited(rank, code, error):
                self._running.discard(rank)
                self.failures.worker(rank).error = self.failures.worker(rank).error or error
                by_launcher, ran = (rank, -code) in self._sent, now - self._started[rank]
                self.failures.exited(WorkerExit(rank, code, now, by_launcher, ran))
            case Joined(rank, name, together):
                self.failures.joined(rank, name, together)
            case Left(rank, shut_down, agreed):
                self.failures.left(rank, shut_down, agreed, self._was_asked(rank))
            case Failed(rank, lost, error):
                if not self._was_asked(rank):  # else it fails because it was asked to end
                    self.failures.raised(rank, lost, error)

    def _was_asked(self, rank: int) -> bool:
        return any(rank == asked for asked, _ in self._sent)

    def _proceed(self, now: float) -> list[Instruction]:
        """Go to the phase that follows from a report, an exit, or the time."""
        if self.phase is JobPhase.SETTLING and not self.failures.has_failure():
            self.phase = JobPhase.RUNNING  # a worker that reported a failure has succeeded after all
        told = self._restart_workers(now) if self.phase is JobPhase.RUNNING else []
        failed = self.failures.has_failure()
        if not self._running and (failed or not self.restarts.waiting or self.phase is not JobPhase.RUNNING):
            self._finish()
        elif self.phase is JobPhase.RUNNING and failed:
            self.phase, self._phase_ends_at = JobPhase.SETTLING, now + SETTLE_SECONDS
        if self.phase is JobPhase.SETTLING and self.failures.settled():
            told += self._end(signal.SIGTERM, now)
        return told

    def _restart_workers(self, now: float) -> list[Instruction]:
        """End and start workers of a running job by their policies."""
        told = list(self.restarts.look(self.failures, self._running, now))
        for each in told:
            match each:
                case Signal(rank, signum):
                    self._sent.add((rank, signum))
                case Start(rank):
                    self._start(rank, now)
        if self.restarts.stuck is not None:
            told += self._abandon(f"rank {self.restarts.stuck} was to be started again, and outlived KILL", now)
        return told

    def _start(self, rank: int, now: float) -> Start:
        """Note that a worker runs from now on; signals that the one before it was sent count no more."""
        self._running.add(rank)
        self._started[rank] = now
        self._sent = {(each, signum) for each, signum in self._sent if each != rank}
        return Start(rank)

    def _interrupted(self, signum: int, now: float) -> list[Instruction]:
        self.told_to_end = True
        if self.phase in (JobPhase.RUNNING, JobPhase.SETTLING):
            if self.phase is JobPhase.RUNNING:
                self.interrupted_by = signum
            return self._end(signal.SIGINT if signum == signal.SIGINT else signal.SIGTERM, now)
        # The user asks again, or does not want to wait for the end of a job that failed.
        return self._kill(now) if self.phase is JobPhase.ENDING else []

    def _abandon(self, reason: str, now: float) -> list[Instruction]:
        if self.phase is not JobPhase.RUNNING:
            return []  # one of this node's workers has failed, and perhaps is the cause: it may end by itself until ``wake_at``
        self.abandoned = reason
        return self._end(signal.SIGTERM, now)

    def _time_passed(self, now: float) -> list[Instruction]:
        if self.wake_at is None or now < self.wake_at:
            return []
        if self.phase is JobPhase.RUNNING:
            return self._proceed(now)
        if self.phase is JobPhase.SETTLING:
            return self._end(signal.SIGTERM, now)
        if self.phase is JobPhase.ENDING:
            return self._kill(now)
        self._finish()
        return []

    def _end(self, signum: int, now: float) -> list[Instruction]:
        if not self._running:  # all that has ended was to be started again
            self._finish()
            return []
        self.phase, self._phase_ends_at = JobPhase.ENDING, now + self.grace
        return self._signal_all(signum)

    def _kill(self, now: float) -> list[Instruction]:
        self.phase, self._phase_ends_at = JobPhase.KILLING, now + UNKILLABLE_SECONDS
        return self._signal_all(signal.SIGKILL)

    def _finish(self) -> None:
        self.phase, self._phase_ends_at = JobPhase.FINISHED, None

    def _signal_all(self, signum: int) -> list[Instruction]:
        self._sent |= {(rank, signum) for rank in self._running}
        return [Signal(rank, signum) for rank in sorted(self._running)]
