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
from collections.abc import Iterable
from dataclasses import dataclass

from ..core.errors import IllegalEventError
from .instructions import Instruction, Signal, Start
from .restarts.rules import RestartPolicy
from .restarts.workers import WorkerRestarts
from .root_cause import FailureGraph, WorkerExit

SETTLE_SECONDS = 5.0
"""Time that the cause of a failure has to end by itself, once the failure is known."""

UNKILLABLE_SECONDS = 1.0
"""Time after KILL at which a worker that still runs is given up."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The job is to start."""


@dataclass(frozen=True, slots=True)
class Added:
    """A worker is to start: one more, or in the place of one that has ended well.

    ``worker`` is its rank, ``policy`` that of its restarts.
    """

    worker: int
    policy: RestartPolicy


@dataclass(frozen=True, slots=True)
class Joined:
    """A worker reports that it has joined a job as ``name``; ``together``: its workers begin and end together."""

    rank: int
    name: str
    together: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker reports that it has lost another one. It decides nothing: what fails because of that is reported, too."""

    rank: int
    worker: str
    reason: str


@dataclass(frozen=True, slots=True)
class Left:
    """A worker reports that it leaves its job: after ``rpc.shutdown``, or because its process ends."""

    rank: int
    shut_down: bool
    agreed: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """A worker reports that its program raised an exception; ``lost`` names the workers whose loss caused that.

    ``error`` is the last line of its traceback.
    """

    rank: int
    lost: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Exited:
    """A worker's process ended; ``code`` is its exit code, or minus the signal's number.

    ``error`` is the exception that its log ends with, for a worker that reported none; empty if it is not known.
    """

    rank: int
    code: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The launcher itself was asked to end, by this signal."""

    signum: int


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The job ends because of another node, or of the fork server; this node's workers are to end, too."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wake:
    """The clock reached ``Supervisor.wake_at``."""


Report = Joined | Lost | Left | Failed
Event = Begin | Added | Report | Exited | Interrupted | Abandoned | Wake


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
                return self._start(range(self.size), now)
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
        return rank in self._running or self.restarts.is_waiting(rank)

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
            self._sent = {(each, signum) for each, signum in self._sent if each != rank}
        return self._start([rank], now)

    def _record(self, event: Report | Exited, now: float) -> None:
        match event:
            case Exited(rank, code, error):
                self._running.discard(rank)
                self.failures.worker(rank).error = self.failures.worker(rank).error or error
                self.failures.exited(WorkerExit(rank, code, now, by_launcher=(rank, -code) in self._sent))
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
        if not self._running and not self._waits_for_restart():
            self._finish()
        elif self.phase is JobPhase.RUNNING and self.failures.has_failure():
            self.phase, self._phase_ends_at = JobPhase.SETTLING, now + SETTLE_SECONDS
        if self.phase is JobPhase.SETTLING and self.failures.settled():
            told += self._end(signal.SIGTERM, now)
        return told

    def _restart_workers(self, now: float) -> list[Instruction]:
        """End and start workers of a running job by their policies."""
        told = list(self.restarts.look(self.failures, self._running, now))
        self._sent |= {(each.rank, each.signum) for each in told if isinstance(each, Signal)}
        self.failures.excused = self.restarts.excused
        if self.restarts.stuck is not None:
            return told + self._abandon(f"rank {self.restarts.stuck} was to be started again, and outlived KILL", now)
        if not self.failures.has_failure():
            ranks = self.restarts.due(now)
            for rank in ranks:
                self.failures.replaced(rank)
            self._sent = {(rank, signum) for rank, signum in self._sent if rank not in ranks}
            told += self._start(ranks, now)
        return told

    def _waits_for_restart(self) -> bool:
        return self.phase is JobPhase.RUNNING and self.restarts.waits and not self.failures.has_failure()

    def _start(self, ranks: Iterable[int], now: float) -> list[Instruction]:
        self._running |= set(ranks)
        for rank in ranks:
            self.restarts.started(rank, now)
        return [Start(rank) for rank in ranks]

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
