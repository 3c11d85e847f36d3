"""Lifetimes of contexts on one worker: which are live, which have ended, and which workers must be told. A pure state machine.

A context id has 64 bits: worker 16, incarnation 16, counter 32, so ids of different workers and incarnations never meet. A
worker's *parent* in a context is the worker from which it got the first message of it. The parents form a tree whose root is
the creator; when the creator leaves the context, each worker passes ``Release`` on to those that it may have brought in. A
worker that loses its parent reports ``Orphan`` to the creator. The contexts of a lost creator have ended.

Ended numbers are kept as intervals. Only the creator knows the numbers that never left it, so its ``Release`` says since which
number all have ended: a worker has at most about as many intervals as the creator has contexts open at the same time.

Control messages arrive exactly once, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from ..core.errors import IllegalEventError
from ..rpc.extend import IntervalSet


class Creator(NamedTuple):
    """The worker that made a context: its rank and incarnation."""

    rank: int
    incarnation: int


def make_id(creator: Creator, number: int) -> int:
    """Return the 64-bit id of a creator's context number ``number``."""
    return creator.rank << 48 | creator.incarnation << 32 | number


def split_id(context_id: int) -> tuple[Creator, int]:
    """Return the creator and the number of a context."""
    return Creator(context_id >> 48, context_id >> 32 & 0xFFFF), context_id & 0xFFFFFFFF


class Lifetime:
    """Lifetime of one live context: its parent (the creator has none), and the workers that may know of it from here."""

    def __init__(self, context_id: int, parent: int | None) -> None:
        self.id = context_id
        self.parent = parent
        self.reached: set[int] = set()


# -- control messages


class Release(NamedTuple):
    """The context has ended, and so have all of its creator from number ``since`` to its own."""

    context: int
    since: int


class Orphan(NamedTuple):
    """The sender has lost its parent in the context: the creator has to tell it the end."""

    context: int


Message: TypeAlias = Release | Orphan

# -- events


class Arrived(NamedTuple):
    """A message of a context that is not live here arrived."""

    context: int
    sender: int


class Left(NamedTuple):
    """The creator, this worker, leaves the context."""

    context: int


class Received(NamedTuple):
    """A control message arrived."""

    sender: int
    message: Message


class WorkerLost(NamedTuple):
    """A worker is gone for good."""

    rank: int


class Closed(NamedTuple):
    """The agent ends: later messages bring no context back."""


Event: TypeAlias = Arrived | Left | Received | WorkerLost | Closed

# -- instructions


class Send(NamedTuple):
    """Send a control message to the worker of rank ``to``."""

    to: int
    message: Message


class Ended(NamedTuple):
    """The context has ended here. Drop it outside of the driver's lock: it may hold a user's objects."""

    context: Lifetime


Instruction: TypeAlias = Send | Ended
C = TypeVar("C", bound=Lifetime)


class Lifetimes(Generic[C]):
    """The contexts that one worker knows of.

    Args:
        me: the worker.
        make: makes the record of a context, from its id and its parent.
    """

    def __init__(self, me: Creator, make: Callable[[int, int | None], C]) -> None:
        self.me = me
        self._make = make
        self._live: dict[int, C] = {}
        self._ended: dict[Creator, IntervalSet] = {}
        self._lost: set[int] = set()
        self._last = 0
        self._closed = False

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[C]:
        return iter(list(self._live.values()))

    def get(self, context_id: int) -> C | None:
        """Return the live context of that id."""
        return self._live.get(context_id)

    def ended(self) -> dict[Creator, IntervalSet]:
        """Return the numbers of ended contexts, by creator."""
        return self._ended

    def create(self) -> C:
        """Return a new context of this worker."""
        self._last += 1
        return self._add(make_id(self.me, self._last), None)

    def reach(self, context: C, to: int) -> bool:
        """Note that a message of the context is about to go to the worker ``to``; False if the context has ended."""
        if self._live.get(context.id) is not context:
            return False
        if to not in (self.me.rank, context.parent, context.id >> 48):
            context.reached.add(to)
        return True

    def handle(self, event: Event) -> list[Instruction]:
        """Take an event, and return what the driver has to do.

        Raises:
            IllegalEventError: this worker leaves a context that another one created.
        """
        match event:
            case Arrived(context_id, sender):
                return self._arrived(context_id, sender)
            case Left(context_id):
                return self._left(context_id)
            case Received(sender, Release() as message):
                return self._released(sender, message)
            case Received(sender, message):
                return self._orphaned(sender, message.context)
            case WorkerLost(rank):
                return self._worker_lost(rank)
            case Closed():
                return self._close()

    # -- events

    def _arrived(self, context_id: int, sender: int) -> list[Instruction]:
        if context_id in self._live or self._has_ended(context_id):
            return []
        context = self._add(context_id, sender)
        return [self._report_orphan(context)] if sender in self._lost else []

    def _left(self, context_id: int) -> list[Instruction]:
        creator, number = split_id(context_id)
        if creator != self.me:
            raise IllegalEventError(
                f"context {context_id} is worker {creator.rank}'s: worker {self.me.rank} cannot end it"
            )
        ended = self._ended_of(self.me)
        ended.add(number)
        return self._end(context_id, ended.start_of(number), self.me.rank)

    def _released(self, sender: int, message: Release) -> list[Instruction]:
        creator, number = split_id(message.context)
        if creator.rank not in self._lost and not self._closed:
            self._ended_of(creator).add_range(min(message.since, number), number + 1)
        return self._end(message.context, message.since, sender)

    def _orphaned(self, sender: int, context_id: int) -> list[Instruction]:
        creator, number = split_id(context_id)
        context = self._live.get(context_id)
        if context is not None:
            context.reached.add(sender)
        elif creator == self.me and number in self._ended_of(creator):
            return [Send(sender, Release(context_id, self._ended_of(creator).start_of(number)))]
        return []

    def _worker_lost(self, rank: int) -> list[Instruction]:
        self._lost.add(rank)
        instructions: list[Instruction] = []
        for context in self:
            creator, number = split_id(context.id)
            if creator.rank == rank:
                # Passed on: workers without a connection to the creator hear of its loss late, or never.
                instructions += self._end(context.id, number, rank)
            elif context.parent == rank:
                instructions.append(self._report_orphan(context))
        for creator in [creator for creator in self._ended if creator.rank == rank]:
            del self._ended[creator]
        return instructions

    def _close(self) -> list[Instruction]:
        self._closed = True
        live, self._live = list(self._live.values()), {}
        return [Ended(context) for context in live]

    # -- small parts

    def _add(self, context_id: int, parent: int | None) -> C:
        context = self._live[context_id] = self._make(context_id, parent)
        return context

    def _has_ended(self, context_id: int) -> bool:
        creator, number = split_id(context_id)
        if self._closed or creator == self.me or creator.rank in self._lost:
            return True
        return creator in self._ended and number in self._ended[creator]

    def _ended_of(self, creator: Creator) -> IntervalSet:
        ended = self._ended.get(creator)
        if ended is None:
            ended = self._ended[creator] = IntervalSet()
            ended.add(0)  # no context has this number: the first ones join it
        return ended

    def _end(self, context_id: int, since: int, source: int) -> list[Instruction]:
        # source: the worker from which this one knows, and which need not be told.
        context = self._live.pop(context_id, None)
        if context is None:
            return []
        if not context.reached:
            return [Ended(context)]
        return [Ended(context), *(Send(to, Release(context_id, since)) for to in sorted(context.reached - {source}))]

    def _report_orphan(self, context: C) -> Send:
        creator, _ = split_id(context.id)
        return Send(creator.rank, Orphan(context.id))
