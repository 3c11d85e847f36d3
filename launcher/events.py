"""Events of a job, which its supervisor is told of, and its instructions to the process engine."""

from dataclasses import dataclass

from .restarts.history import PastRestart
from .restarts.rules import RestartPolicy


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


@dataclass(frozen=True, slots=True)
class Start:
    """Start the worker's process."""

    rank: int


@dataclass(frozen=True, slots=True)
class Signal:
    """Send the worker this signal."""

    rank: int
    signum: int


@dataclass(frozen=True, slots=True)
class Restarting:
    """Tell the user of a restart."""

    restart: PastRestart


Instruction = Start | Signal | Restarting
