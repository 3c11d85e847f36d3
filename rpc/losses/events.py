"""Events and instructions of the verdicts about lost workers (``verdict.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..links.reports import Evidence, Loss, Report

# -- events


class Opened(NamedTuple):
    """A session to a worker opened."""

    number: int


class Reached(NamedTuple):
    """A worker acknowledged this worker's report of that version, on a direct session."""

    number: int
    version: int


class Unreachable(NamedTuple):
    """A worker cannot be reached from here."""

    number: int
    evidence: Evidence


class MemberJoined(NamedTuple):
    """A worker has joined the group. ``number`` is its number, which no worker had before."""

    number: int


class MemberLeft(NamedTuple):
    """A worker said goodbye, with its last report: news of a loss may be on its way still, on another session."""

    number: int
    reason: str
    report: Report = Report()


class ReportReceived(NamedTuple):
    """A report arrived."""

    sender: int
    report: Report


class LeaveAsked(NamedTuple):
    """Request of this worker to leave alone; it has no work any more."""


class TimePassed(NamedTuple):
    """The time that ``Verdicts.due`` returned has come."""


Event: TypeAlias = Opened | Reached | Unreachable | MemberJoined | MemberLeft | ReportReceived | LeaveAsked | TimePassed

# -- instructions


@dataclass(slots=True)
class SendReport:
    """Post the report to these workers. Each that acknowledges it on a direct session is `Reached`."""

    to: list[int]
    report: Report


@dataclass(slots=True)
class Lose:
    """Count that worker as lost for good, even if messages of it come later."""

    number: int
    loss: Loss


@dataclass(slots=True)
class CloseAgent:
    """Close the agent and end the process with a failure: this worker itself is lost."""

    reason: str


@dataclass(slots=True)
class LeaveGranted:
    """Let this worker leave: another one knows that it does so, or there is no other."""


Instruction: TypeAlias = SendReport | Lose | CloseAgent | LeaveGranted
