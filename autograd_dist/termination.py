"""Detection that a backward over many workers has finished: a diffusing computation, after Dijkstra and Scholten (1980).

A pure state machine of one worker in one pass. Work travels as requests, and the answer to a request acknowledges it. An idle
worker becomes *engaged* by its first request. It answers that request only when it is idle again and all its own requests are
answered. It answers other requests as soon as the thread that works on them has nothing more to do. So the root has all its
answers exactly when no thread of any worker has work. A worker may be engaged again later.

Work for the sender of a request goes into the answer. The sender stays engaged until it has the answer and has
done the work in it, so this work needs no acknowledgement of its own. A call and its backward are two round trips in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

Work: TypeAlias = list[Any]


class Request(Protocol):
    """Request that arrived. The machine needs only its sender's number."""

    @property
    def sender(self) -> int:
        """Number of the worker that sent it."""
        ...


R = TypeVar("R", bound=Request)


@dataclass(slots=True)  # Python 3.10 has no generic named tuples
class Answer(Generic[R]):
    """Answer a request, with work for its sender. ``last``: this worker is idle, and all its own requests are answered."""

    request: R
    work: Work
    last: bool


class Ask(NamedTuple):
    """Send a request with work to a worker."""

    to: int
    work: Work


class Over(NamedTuple):
    """The computation is over, on all workers; only the root gets this."""


OVER = Over()
Instruction: TypeAlias = Answer[R] | Ask | Over


class Termination(Generic[R]):
    """Part of one worker in a diffusing computation.

    Args:
        is_root: whether this worker starts the computation.

    Attributes:
        asked: numbers of the workers that get requests, or have got some.
    """

    __slots__ = ("asked", "awaited", "busy", "engaged", "is_root", "parent")

    def __init__(self, is_root: bool) -> None:
        self.is_root = is_root
        self.engaged = False
        self.parent: R | None = None
        self.awaited = 0  # requests of this worker that are not answered
        self.busy = 0  # threads at work
        self.asked: set[int] = set()

    def started(self) -> None:
        """Note that a thread begins to work without a request, at the root."""
        self.engaged = True
        self.busy += 1

    def received(self, request: R) -> None:
        """Note that a request came and a thread begins to work on it."""
        self.busy += 1
        if not self.engaged:
            self.engaged, self.parent = True, request

    def answered(self) -> None:
        """Note that an answer came and a thread begins to work on its work."""
        self.awaited -= 1
        self.busy += 1

    def sent(self, outgoing: dict[int, Work]) -> list[Instruction[R]]:
        """Note that work for other workers leaves while a thread goes on; return the requests to send.

        Args:
            outgoing: the work, by worker.
        """
        self.awaited += len(outgoing)
        self.asked.update(outgoing)
        return [Ask(to, work) for to, work in outgoing.items()]

    def rested(self, request: R | None, outgoing: dict[int, Work]) -> list[Instruction[R]]:
        """Note that a thread has nothing more to do.

        Args:
            request: the request on which it worked; ``None`` if it was started, or worked on an answer.
            outgoing: new work for other workers, by number.

        Returns:
            Messages to send, and ``Over`` at the root when there is no work left on any worker.
        """
        self.busy -= 1
        instructions: list[Instruction[R]] = []
        if request is not None and request is not self.parent:
            instructions.append(Answer(request, outgoing.pop(request.sender, []), False))
        back = outgoing.pop(self.parent.sender, []) if self.parent is not None else []
        if self.busy or self.awaited or outgoing:
            if back and self.parent is not None:
                outgoing[self.parent.sender] = back  # as a request, because the answer must wait for others
            return [*instructions, *self.sent(outgoing)]
        return [*instructions, *self._settle(back)]

    def _settle(self, back: Work) -> list[Instruction[R]]:
        parent, self.parent, self.engaged = self.parent, None, False
        return [OVER] if parent is None else [Answer(parent, back, True)]
