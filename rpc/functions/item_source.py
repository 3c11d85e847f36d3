"""Callee's side of an item stream, as a state machine: requests for items come in, steps of the generator go out.

The caller asks for each item by its number (a *pull*), and the generator makes an item only when there is a pull for it. So
the caller decides how far the generator may be ahead. Pulls may arrive in any order. At most one step runs at a time. After
``Close`` the generator is closed, and makes no more items.

======== =========================== ============= ===================================
phase    event                       next phase    instructions
======== =========================== ============= ===================================
IDLE     Pulled, the next item       RUNNING       Step
IDLE     Pulled, a later item        IDLE          (kept)
IDLE     Close                       CLOSING       CloseGenerator, NoMoreItems for all
RUNNING  Pulled                      RUNNING       (kept)
RUNNING  Stepped, next item pulled   RUNNING       Step
RUNNING  Stepped, otherwise          IDLE
RUNNING  Close                       INTERRUPTED   Interrupt, NoMoreItems for all
RUNNING  Finished                    ENDED         NoMoreItems for all
INTER.   Stepped                     CLOSING       CloseGenerator
INTER.   Finished                    ENDED
CLOSING  Finished                    ENDED
(others) Pulled                      the same      NoMoreItems
(others) Close                       the same
======== =========================== ============= ===================================
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from ...base.errors import IllegalEventError


class GeneratorPhase(Enum):
    """State of a generator."""

    IDLE = "idle"
    RUNNING = "running"
    INTERRUPTED = "interrupted"  # a step runs, and the generator is to be closed after it
    CLOSING = "closing"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Pulled:
    """The caller asks for the item of that number; ``pull`` is the request, to be answered."""

    number: int
    pull: Any


@dataclass(frozen=True, slots=True)
class Stepped:
    """The step has ended, and its pull is answered with an item."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The generator has ended, has raised, or was closed."""


@dataclass(frozen=True, slots=True)
class Close:
    """No more items are needed: the caller closed the stream or is lost, or an item could not be sent."""


@dataclass(frozen=True, slots=True)
class Step:
    """Make the next item, and answer ``pull`` with it."""

    pull: Any


@dataclass(frozen=True, slots=True)
class NoMoreItems:
    """Tell the caller, in answer to ``pull``, that there are no more items."""

    pull: Any


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Make the step that runs end soon, if that is possible."""


@dataclass(frozen=True, slots=True)
class CloseGenerator:
    """Close the generator; ``Finished`` follows."""


Event: TypeAlias = Pulled | Stepped | Finished | Close
Instruction: TypeAlias = Step | NoMoreItems | Interrupt | CloseGenerator


class ItemSource:
    """State of one generator that runs for another worker.

    Attributes:
        phase: the generator's state.
    """

    def __init__(self) -> None:
        self.phase = GeneratorPhase.IDLE
        self._next = 0  # number of the next item
        self._pulls: dict[int, Any] = {}  # by number of the item: pulls whose step has not begun

    def handle(self, event: Event) -> list[Instruction]:
        """Take an event and return what the driver has to do.

        Raises:
            IllegalEventError: the event cannot happen in this phase.
        """
        if isinstance(event, Pulled):
            return self._pulled(event)
        if isinstance(event, Close):
            return self._close()
        return self._finished() if isinstance(event, Finished) else self._stepped()

    def _pulled(self, event: Pulled) -> list[Instruction]:
        if self.phase not in (GeneratorPhase.IDLE, GeneratorPhase.RUNNING):
            return [NoMoreItems(event.pull)]
        if event.number >= self._next:  # otherwise a repeated pull, which is ignored
            self._pulls.setdefault(event.number, event.pull)
        return self._go_on() if self.phase is GeneratorPhase.IDLE else []

    def _go_on(self) -> list[Instruction]:
        pull = self._pulls.pop(self._next, None)
        self.phase = GeneratorPhase.IDLE if pull is None else GeneratorPhase.RUNNING
        if pull is None:
            return []
        self._next += 1
        return [Step(pull)]

    def _stepped(self) -> list[Instruction]:
        if self.phase is GeneratorPhase.RUNNING:
            return self._go_on()
        if self.phase is not GeneratorPhase.INTERRUPTED:
            raise IllegalEventError(f"a generator that is {self.phase.value} made an item")
        self.phase = GeneratorPhase.CLOSING
        return [CloseGenerator()]

    def _close(self) -> list[Instruction]:
        if self.phase is GeneratorPhase.IDLE:
            self.phase = GeneratorPhase.CLOSING
            return [CloseGenerator(), *self._end_all()]
        if self.phase is GeneratorPhase.RUNNING:
            self.phase = GeneratorPhase.INTERRUPTED
            return [Interrupt(), *self._end_all()]
        return []

    def _finished(self) -> list[Instruction]:
        if self.phase in (GeneratorPhase.IDLE, GeneratorPhase.ENDED):
            raise IllegalEventError(f"a generator that is {self.phase.value} ended")
        self.phase = GeneratorPhase.ENDED
        return self._end_all()

    def _end_all(self) -> list[Instruction]:
        pulls, self._pulls = self._pulls, {}
        return [NoMoreItems(pull) for pull in pulls.values()]
