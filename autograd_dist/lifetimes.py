"""Lifetimes of contexts on one worker: which are live, which have ended, and which workers must be told. A pure state machine.

A context id has 64 bits: worker 16, incarnation 16, counter 32. So ids of different workers and incarnations differ. A
worker's *parent* in a context is the worker from which it got the first message of it. The parents form a tree whose root is
the creator. When the creator leaves the context, each worker passes ``Release`` on to the workers whose parent it may be. A
worker that loses its parent reports ``Orphan`` to the creator. The contexts of a lost creator have ended.

Ended numbers are kept as intervals. Only the creator knows the contexts of which no other worker was told. So its ``Release``
says from which number on all have ended. A worker then has at most about as many intervals as the creator has open contexts.

Control messages arrive exactly once, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from ..base.errors import IllegalEventError
from ..rpc.extend import IntervalSet
from ..rpc.extend import Received as Received
from ..rpc.extend import Send as Send
from ..rpc.extend import WorkerLost as WorkerLost


def make_creator(worker: int, incarnation: int) -> int:
    """Return the *creator*, the upper half of the ids of a worker's contexts."""
    return worker << 16 | incarnation


def make_id(creator: int, number: int) -> int:
    """Return the 64-bit id of a creator's context number ``number``."""
    return creator << 32 | number


def split_id(context_id: int) -> tuple[int, int]:
    """Return the creator and the number of a context."""
    return context_id >> 32, context_id & 0xFFFFFFFF


class Lifetime:
    """Lifetime of one live context: its parent (the creator has none), and the workers whose parent this one may be."""

    def __init__(self, context_id: int, parent: int | None) -> None:
        self.id = context_id
        self.parent = parent
        self.reached: set[int] = set()


# -- control messages


class Release(NamedTuple):
    """The context has ended, and so have all contexts of its creator from number ``since`` to its own."""

    context: int
    since: int

    def covers(self, other: Message) -> bool:
        """Return whether this message makes another one needless."""
        if type(other) is not Release or other.since < self.since:
            return False
        return 0 <= self.context - other.context <= (self.context & 0xFFFFFFFF) - self.since


class Orphan(NamedTuple):
    """The sender has lost its parent in the context, so the creator must tell it when the context ends."""

    context: int


Message: TypeAlias = Release | Orphan


def add_message(batch: list[Message], message: Message) -> None:
    """Add a message to a batch for one worker."""
    if batch and type(message) is Release and message.covers(batch[-1]):
        batch[-1] = message
    else:
        batch.append(message)


# -- events


class ContextArrived(NamedTuple):
    """A message arrived whose context is not live here."""

    context: int
    sender: int


class ContextLeft(NamedTuple):
    """The creator, this worker, leaves the context."""

    context: int


class Closed(NamedTuple):
    """The agent ends. Later messages make no contexts."""


Event: TypeAlias = ContextArrived | ContextLeft | Received[int, Message] | WorkerLost[int] | Closed

# -- instructions


class ContextEnded(NamedTuple):
    """Drop the context, without the driver's lock: it has ended here, and may hold a user's objects."""

    context: Lifetime


Instruction: TypeAlias = Send[int, Message] | ContextEnded
C = TypeVar("C", bound=Lifetime)


class Lifetimes(Generic[C]):
    """Contexts that one worker knows.

    Args:
        me: the worker as a creator (``make_creator``).
        make: makes the record of a context, from its id and its parent.

    Attributes:
        live: the live contexts by id; read only, also without a lock.
    """

    def __init__(self, me: int, make: Callable[[int, int | None], C]) -> None:
        self.me = me
        self.worker = me >> 16
        self._make = make
        self.live: dict[int, C] = {}
        self._ended: dict[int, IntervalSet] = {}  # by creator
        self._lost: set[int] = set()
        self._last = 0
        self._closed = False

    def __len__(self) -> int:
        return len(self.live)

    def __iter__(self) -> Iterator[C]:
        return iter(list(self.live.values()))

    def ended(self) -> dict[int, IntervalSet]:
        """Return the numbers of ended contexts, by creator."""
        return self._ended

    def create(self) -> C:
        """Return a new context of this worker."""
        self._last += 1
        return self._add(make_id(self.me, self._last), None)

    def reach(self, context: C, to: int) -> bool:
        """Note that a message of the context is about to go to the worker ``to``; False if the context has ended."""
        if self.live.get(context.id) is not context:
            return False
        if to not in (self.worker, context.parent, context.id >> 48):
            context.reached.add(to)
        return True

    def handle(self, event: Event) -> list[Instruction]:
        """Take an event, and return what the driver has to do.

        Raises:
            IllegalEventError: this worker leaves a context that another one created.
        """
        match event:
            case ContextArrived(context_id, sender):
                return self._arrived(context_id, sender)
            case ContextLeft(context_id):
                return self._left(context_id)
            case Received(sender, Release() as message):
                return self._released(sender, message)
            case Received(sender, message):
                return self._orphaned(sender, message.context)
            case WorkerLost(worker):
                return self._worker_lost(worker)
            case Closed():
                return self._close()

    # -- events

    def _arrived(self, context_id: int, sender: int) -> list[Instruction]:
        if context_id in self.live or self._has_ended(context_id):
            return []
        context = self._add(context_id, sender)
        return [self._report_orphan(context)] if sender in self._lost else []

    def _left(self, context_id: int) -> list[Instruction]:
        creator, number = split_id(context_id)
        if creator != self.me:
            raise IllegalEventError(
                f"context {context_id} is worker {creator >> 16}'s: worker {self.worker} cannot end it"
            )
        ended = self._ended_of(self.me)
        ended.add(number)
        return self._end(context_id, ended.start_of(number), self.worker)

    def _released(self, sender: int, message: Release) -> list[Instruction]:
        creator, number = split_id(message.context)
        if creator >> 16 not in self._lost and not self._closed:
            self._ended_of(creator).add_range(min(message.since, number), number + 1)
        # All contexts that it covers, because no other release is sent for them. In order, so that releases that are passed
        # on cover one another too.
        last, instructions = message.context, list[Instruction]()
        first = last - number + min(message.since, number)
        for context_id in sorted([each for each in self.live if first <= each <= last]):
            instructions += self._end(context_id, message.since, sender)
        return instructions

    def _orphaned(self, sender: int, context_id: int) -> list[Instruction]:
        creator, number = split_id(context_id)
        context = self.live.get(context_id)
        if context is not None:
            context.reached.add(sender)
        elif creator == self.me and number in self._ended_of(creator):
            return [Send(sender, Release(context_id, self._ended_of(creator).start_of(number)))]
        return []

    def _worker_lost(self, worker: int) -> list[Instruction]:
        self._lost.add(worker)
        instructions: list[Instruction] = []
        for context in self:
            creator, number = split_id(context.id)
            if creator >> 16 == worker:
                # Passed on, because workers without a session to the creator are told of its loss late, or never.
                instructions += self._end(context.id, number, worker)
            elif context.parent == worker:
                instructions.append(self._report_orphan(context))
        for creator in [creator for creator in self._ended if creator >> 16 == worker]:
            del self._ended[creator]
        return instructions

    def _close(self) -> list[Instruction]:
        self._closed = True
        ended: list[Instruction] = [ContextEnded(context) for context in self]
        self.live.clear()
        return ended

    # -- small parts

    def _add(self, context_id: int, parent: int | None) -> C:
        context = self.live[context_id] = self._make(context_id, parent)
        return context

    def _has_ended(self, context_id: int) -> bool:
        creator, number = split_id(context_id)
        if self._closed or creator == self.me or creator >> 16 in self._lost:
            return True
        return creator in self._ended and number in self._ended[creator]

    def _ended_of(self, creator: int) -> IntervalSet:
        ended = self._ended.get(creator)
        if ended is None:
            ended = self._ended[creator] = IntervalSet()
            ended.add(0)  # no context has this number; the first intervals then join it
        return ended

    def _end(self, context_id: int, since: int, source: int) -> list[Instruction]:
        # source: the worker that told this one, which need not be told.
        context = self.live.pop(context_id, None)
        if context is None:
            return []
        if not context.reached:
            return [ContextEnded(context)]
        release: Message = Release(context_id, since)
        return [ContextEnded(context), *(Send(to, release) for to in sorted(context.reached - {source}))]

    def _report_orphan(self, context: C) -> Send[int, Message]:
        creator, _ = split_id(context.id)
        return Send(creator >> 16, Orphan(context.id))
