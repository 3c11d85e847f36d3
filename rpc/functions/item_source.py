"""Callee's side of an item stream, as a state machine: requests for items come in, steps of the generator go out.

The caller asks for each item by its number (a *pull*), and the generator makes an item only when there is a pull for it. So
the caller decides how far the generator may be ahead. Pulls may arrive in any order. At most one step runs at a time. After
``Close`` the generator is closed, and makes no more items.

======== =========================== ============= =============================
phase    event                       next phase    instructions
======== =========================== ============= =============================
IDLE     Pulled, the next item       RUNNING       Step
IDLE     Pulled, a later item        IDLE          (kept)
IDLE     Close                       CLOSING       CloseGenerator, Ended for all
RUNNING  Pulled                      RUNNING       (kept)
RUNNING  Stepped, next item pulled   RUNNING       Step
RUNNING  Stepped, otherwise          IDLE
RUNNING  Close                       INTERRUPTED   Interrupt, Ended for all
RUNNING  Finished                    ENDED         Ended for all
INTER.   Stepped                     CLOSING       CloseGenerator
INTER.   Finished                    ENDED
CLOSING  Finished                    ENDED
(others) Pulled                      the same      Ended
(others) Close                       the same
======== =========================== ============= =============================
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from ...core.errors import IllegalEventError


class Phase(Enum):
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
class Ended:
    """Tell the caller, in answer to ``pull``, that there are no more items."""

    pull: Any


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Make the step that runs end soon, if that is possible."""


@dataclass(frozen=True, slots=True)
class CloseGenerator:
    """Close the generator; ``Finished`` follows."""


Event: TypeAlias = Pulled | Stepped | Finished | Close
Instruction: TypeAlias = Step | Ended | Interrupt | CloseGenerator


class ItemSource:
    """State of one generator that runs for another worker.

    Attributes:
        phase: the generator's state.
    """

    def __init__(self) -> None:
        self.phase = Phase.IDLE
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
        if self.phase not in (Phase.IDLE, Phase.RUNNING):
            return [Ended(event.pull)]
        if event.number >= self._next:  # otherwise a repeated pull, which is ignored
            self._pulls.setdefault(event.number, event.pull)
        return self._go_on() if self.phase is Phase.IDLE else []

    def _go_on(self) -> list[Instruction]:
        pull = self._pulls.pop(self._next, None)
        self.phase = Phase.IDLE if pull is None else Phase.RUNNING
        if pull is None:
            return []
        self._next += 1
        return [Step(pull)]

    def _stepped(self) -> list[Instruction]:
        if self.phase is Phase.RUNNING:
            return self._go_on()
        if self.phase is not Phase.INTERRUPTED:
            raise IllegalEventError(f"a generator that is {self.phase.value} made an item")
        self.phase = Phase.CLOSING
        return [CloseGenerator()]

    def _close(self) -> list[Instruction]:
        if self.phase is Phase.IDLE:
            self.phase = Phase.CLOSING
            return [CloseGenerator(), *self._end_all()]
        if self.phase is Phase.RUNNING:
            self.phase = Phase.INTERRUPTED
            return [Interrupt(), *self._end_all()]
        return []

    def _finished(self) -> list[Instruction]:
        if self.phase in (Phase.IDLE, Phase.ENDED):
            raise IllegalEventError(f"a generator that is {self.phase.value} ended")
        self.phase = Phase.ENDED
        return self._end_all()

    def _end_all(self) -> list[Instruction]:
        pulls, self._pulls = self._pulls, {}
        return [Ended(pull) for pull in pulls.values()]
