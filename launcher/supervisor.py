"""The supervision of a job as a state machine: events and the clock in, instructions out, no process touched.

    running --first failure--> settling --the cause has ended, or SETTLE over--> ending --grace over--> killing --> finished

*Settling* waits for the worker that caused the failure to end by itself: a worker that fails says goodbye to its peers
first, and one of them may die of it sooner. *Ending* asks every live worker to end (TERM, or INT where the user pressed
Ctrl-C: then it is the first step); *killing* is not a question. The job is finished when every worker is dead, or when
one outlives even KILL (it is stuck in the kernel, and waiting would not help).
"""

import enum
import signal
from dataclasses import dataclass

from .blame import Blame
from .death import Death

SETTLE = 5.0
"""Seconds that the cause of a failure has to end by itself, once the failure is known."""

UNKILLABLE = 1.0
"""Seconds after KILL at which a worker that still lives is given up."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The job is to start."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A worker reports that it has joined a job as ``name``."""

    rank: int
    name: str


@dataclass(frozen=True, slots=True)
class Left:
    """A worker reports that it leaves its job: after ``rpc.shutdown``, or because its process ends."""

    rank: int
    shut_down: bool
    agreed: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """A worker reports that its program raised an exception; ``lost`` names the workers whose loss caused that."""

    rank: int
    lost: tuple[str, ...] = ()


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


Report = Joined | Left | Failed
Event = Begin | Report | Exited | Interrupted | TimePassed
Instruction = Start | Signal


class Phase(enum.Enum):
    """Where the job stands."""

    RUNNING = "running"
    SETTLING = "settling"
    ENDING = "ending"
    KILLING = "killing"
    FINISHED = "finished"


class Supervisor:
    """Supervises ``size`` workers that must all succeed; each gets ``grace`` seconds between TERM and KILL.

    Reports of workers must be handed in before the deaths that follow from them.
    """

    def __init__(self, size: int, grace: float) -> None:
        self.size = size
        self.grace = grace
        self.phase = Phase.RUNNING
        self.wake_at: float | None = None  # when to send TimePassed, at the latest
        self.blame = Blame()
        self.interrupted_by: int | None = None  # set only if no worker had failed before
        self._alive: set[int] = set()
        self._sent: set[tuple[int, int]] = set()  # (rank, signal)

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """Takes in what happened at the time ``now`` (monotonic seconds), says what to do."""
        match event:
            case Begin():
                self._alive = set(range(self.size))
                return [Start(rank) for rank in range(self.size)]
            case Interrupted(signum):
                return self._interrupted(signum, now)
            case TimePassed():
                return self._time_passed(now)
            case Exited(rank, code):
                self._alive.discard(rank)
                self.blame.died(Death(rank, code, now, ours=(rank, -code) in self._sent))
            case Joined(rank, name):
                self.blame.joined(rank, name)
            case Left(rank, shut_down, agreed):
                self.blame.left(rank, shut_down, agreed)
            case Failed(rank, lost):
                if not any(rank == asked for asked, _ in self._sent):  # else it fails of being ended
                    self.blame.failed(rank, lost)
        return self._go_on(now)

    @property
    def deaths(self) -> list[Death]:
        """Ends of workers, in their order."""
        return self.blame.deaths

    @property
    def cause(self) -> Death | None:
        """The failure that ended the job; none if all went well or the user ended it."""
        return None if self.interrupted_by is not None else self.blame.cause()

    @property
    def exit_code(self) -> int:
        """Exit code of the launcher: the cause's code, 128 + the number where it was a signal, else 1."""
        if self.interrupted_by is not None:
            return 128 + self.interrupted_by
        if (cause := self.cause) is None:
            return 0
        if cause.by_foreign_signal:
            return 128 - cause.code
        return max(cause.code, 1)

    def _go_on(self, now: float) -> list[Instruction]:
        """After a report or a death."""
        if not self._alive:
            self._finish()
        elif self.phase is Phase.RUNNING and self.blame.failure():
            self.phase, self.wake_at = Phase.SETTLING, now + SETTLE
        if self.phase is not Phase.SETTLING:
            return []
        if not self.blame.failure():  # a worker that reported a failure has succeeded after all
            self.phase, self.wake_at = Phase.RUNNING, None
            return []
        return self._end(signal.SIGTERM, now) if self.blame.settled() else []

    def _interrupted(self, signum: int, now: float) -> list[Instruction]:
        if self.phase in (Phase.RUNNING, Phase.SETTLING):
            if self.phase is Phase.RUNNING:
                self.interrupted_by = signum
            return self._end(signal.SIGINT if signum == signal.SIGINT else signal.SIGTERM, now)
        # The user asks again, or does not want to wait for the end of a job that failed.
        return self._kill(now) if self.phase is Phase.ENDING else []

    def _time_passed(self, now: float) -> list[Instruction]:
        if self.wake_at is None or now < self.wake_at:
            return []
        if self.phase is Phase.SETTLING:
            return self._end(signal.SIGTERM, now)
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
