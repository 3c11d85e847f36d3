"""The supervision of a job as a state machine: events and the clock in, instructions out, no process touched.

    running --first failure or interruption--> ending --grace over, or asked again--> killing --> finished

*Ending* asks every live worker to end (TERM, or INT where the user pressed Ctrl-C); *killing* is not a question. The
job is finished when every worker is dead, or when one outlives even KILL (it is stuck in the kernel, and waiting
would not help).
"""

import enum
import signal
from dataclasses import dataclass

SAME_INSTANT = 1.0
"""Seconds. A worker that is killed takes others with it: they fail with errors of their own at nearly the same time,
and may be noticed first. So within this time a death by a signal that we did not send is the cause, not an error."""

UNKILLABLE = 1.0
"""Seconds after KILL at which a worker that still lives is given up."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The job is to start."""


@dataclass(frozen=True, slots=True)
class Exited:
    """A worker's process ended; ``code`` is its exit code, or minus the signal's number."""

    rank: int
    code: int


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The launcher itself was asked to end, by this signal."""

    signum: int


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nothing happened, but the clock reached ``Supervisor.wake_at``."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start the worker's process."""

    rank: int


@dataclass(frozen=True, slots=True)
class Signal:
    """Send the worker this signal."""

    rank: int
    signum: int


Event = Begin | Exited | Interrupted | TimePassed
Instruction = Start | Signal


@dataclass(frozen=True, slots=True)
class Death:
    """How and when a worker ended; ``ours`` when by a signal that we had sent it."""

    rank: int
    code: int
    at: float
    ours: bool

    @property
    def failed(self) -> bool:
        """Whether the worker failed by itself."""
        return self.code != 0 and not self.ours

    @property
    def by_foreign_signal(self) -> bool:
        """Whether something other than the launcher killed it."""
        return self.code < 0 and not self.ours


class Phase(enum.Enum):
    """Where the job stands."""

    RUNNING = "running"
    ENDING = "ending"
    KILLING = "killing"
    FINISHED = "finished"


class Supervisor:
    """Supervises ``size`` workers that must all succeed; each gets ``grace`` seconds between TERM and KILL."""

    def __init__(self, size: int, grace: float) -> None:
        self.size = size
        self.grace = grace
        self.phase = Phase.RUNNING
        self.wake_at: float | None = None  # when to send TimePassed, at the latest
        self.deaths: list[Death] = []  # in the order in which they happened
        self.interrupted_by: int | None = None  # set only if no worker had failed before
        self._alive: set[int] = set()
        self._sent: set[tuple[int, int]] = set()  # (rank, signal)

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """Takes in what happened at the time ``now`` (monotonic seconds), says what to do."""
        match event:
            case Begin():
                self._alive = set(range(self.size))
                return [Start(rank) for rank in range(self.size)]
            case Exited(rank, code):
                return self._exited(rank, code, now)
            case Interrupted(signum):
                return self._interrupted(signum, now)
            case TimePassed():
                return self._time_passed(now)

    @property
    def cause(self) -> Death | None:
        """The failure that ended the job; none if all went well or the user ended it."""
        failures = [death for death in self.deaths if death.failed]
        if self.interrupted_by is not None or not failures:
            return None
        first = failures[0]
        killed = (death for death in failures if death.by_foreign_signal and death.at - first.at <= SAME_INSTANT)
        return next(killed, first)

    @property
    def exit_code(self) -> int:
        """What the launcher exits with: the cause's code, 128 + the number where it was a signal."""
        if self.interrupted_by is not None:
            return 128 + self.interrupted_by
        if self.cause is None:
            return 0
        return self.cause.code if self.cause.code > 0 else 128 - self.cause.code

    def _exited(self, rank: int, code: int, now: float) -> list[Instruction]:
        self._alive.discard(rank)
        death = Death(rank, code, now, ours=(rank, -code) in self._sent)
        self.deaths.append(death)
        if not self._alive:
            self._finish()
        elif death.failed and self.phase is Phase.RUNNING:
            return self._end(signal.SIGTERM, now)
        return []

    def _interrupted(self, signum: int, now: float) -> list[Instruction]:
        if self.phase is Phase.RUNNING:
            self.interrupted_by = signum
            return self._end(signal.SIGINT if signum == signal.SIGINT else signal.SIGTERM, now)
        # The user asks again, or does not want to wait for the end of a job that failed.
        return self._kill(now) if self.phase is Phase.ENDING else []

    def _time_passed(self, now: float) -> list[Instruction]:
        if self.wake_at is None or now < self.wake_at:
            return []
        if self.phase is Phase.ENDING:
            return self._kill(now)
        self._finish()
        return []

    def _end(self, signum: int, now: float) -> list[Instruction]:
        self.phase, self.wake_at = Phase.ENDING, now + self.grace
        return self._signal_all(signum)

    def _kill(self, now: float) -> list[Instruction]:
        self.phase, self.wake_at = Phase.KILLING, now + UNKILLABLE
        return self._signal_all(signal.SIGKILL)

    def _finish(self) -> None:
        self.phase, self.wake_at = Phase.FINISHED, None

    def _signal_all(self, signum: int) -> list[Instruction]:
        self._sent |= {(rank, signum) for rank in self._alive}
        return [Signal(rank, signum) for rank in sorted(self._alive)]
