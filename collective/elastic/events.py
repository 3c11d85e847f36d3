"""Events and instructions of the agreement (``agreement.py``), and what workers tell one another in it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Generation(NamedTuple):
    """Name of a generation. Two leaders may choose the same number, if the first is lost."""

    number: int
    leader: int


class Decision(NamedTuple):
    """A generation, as its leader decided it.

    Attributes:
        generation: its name; ``former`` is that of the one before.
        members: numbers of its workers.
        holders: those of them that have the state after ``completed`` steps. The others get it from these.
        completed: steps that count.
        finished: the training is over, and ``members`` is empty.
        error: why there is no such generation; empty if there is one.
    """

    generation: Generation
    former: Generation | None
    members: tuple[int, ...]
    holders: tuple[int, ...]
    completed: int
    finished: bool = False
    error: str = ""


class StepReport(NamedTuple):
    """A worker between two generations.

    Attributes:
        worker: its number.
        decision: its generation; ``None`` for a newcomer.
        seen: number of the latest generation that it has heard of.
        completed: steps that it has completed, or that its state was restored with.
        prepared: whether it has prepared the next step.
        holds: whether it has the training's state.
        leaves: whether it leaves.
        finished: whether it has completed the last step.
        lost: numbers of the workers that are lost, as far as it knows.
        question: number of the question that has this report; it grows.
    """

    worker: int
    decision: Decision | None = None
    seen: int = 0
    completed: int = 0
    prepared: bool = False
    holds: bool = False
    leaves: bool = False
    finished: bool = False
    lost: frozenset[int] = frozenset()
    question: int = 0


# -- events


class Submitted(NamedTuple):
    """Report of this worker: it has stopped, or wants to join."""

    report: StepReport


class Asked(NamedTuple):
    """Another worker gives its report; the ticket names the question."""

    ticket: int
    report: StepReport


class Answered(NamedTuple):
    """A worker answers the question of this number; ``None``: it does not train."""

    number: int
    decision: Decision | None


class Appeared(NamedTuple):
    """A worker has joined the job."""

    worker: int


class Disappeared(NamedTuple):
    """A worker is lost, or has left the job."""

    worker: int


class WaitedEnough(NamedTuple):
    """Workers of the job that have not begun to train are not waited for any longer."""


class GaveUp(NamedTuple):
    """End of this worker's wait for a decision; the reason is for the others."""

    reason: str


Event: TypeAlias = Submitted | Asked | Answered | Appeared | Disappeared | WaitedEnough | GaveUp


# -- instructions


class AskMember(NamedTuple):
    """Give a report to a worker; its answer is ``Answered`` with this number."""

    to: int
    number: int
    report: StepReport


class AnswerMember(NamedTuple):
    """Answer a question."""

    ticket: int
    decision: Decision | None


class Adopt(NamedTuple):
    """Go on with this decision."""

    decision: Decision


class Decline(NamedTuple):
    """Let the collectives of this generation fail: this worker has left, and was taken into it by an old question."""

    decision: Decision


Instruction: TypeAlias = AskMember | AnswerMember | Adopt | Decline
