"""Instructions of a job's supervisor to the process engine."""

from dataclasses import dataclass

from .restarts.history import PastRestart


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
