"""Lifetimes of contexts on one worker: which are live here, which have ended, and who must be told. A pure state machine.

A context id has 64 bits: worker 16, incarnation 16, counter 32, so ids of different workers and incarnations never meet. A
worker's *parent* in a context is the worker from which it first heard of it. The parents form a tree whose root is the
creator; when the creator leaves the context, each worker passes ``RELEASE`` on to those that it may have brought in. A worker
that loses its parent reports ``ORPHAN`` to the creator. The contexts of a lost creator have ended.

Ended numbers are kept as intervals. Only the creator knows the numbers that never left it, so its ``RELEASE`` says since which
number all have ended: a worker has at most about as many intervals as the creator has contexts open at the same time.

Messages arrive exactly once, in any order. Instructions are appended to ``outbox``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from ..rpc.extend import IntervalSet

RELEASE, ORPHAN = 1, 2


class Creator(NamedTuple):
    """The worker that made a context: its rank and incarnation."""

    rank: int
    incarnation: int


def make_id(creator: Creator, number: int) -> int:
    """The 64-bit id of a creator's context number ``number``."""
    return creator.rank << 48 | creator.incarnation << 32 | number


def split_id(context_id: int) -> tuple[Creator, int]:
    """The reverse of ``make_id``."""
    return Creator(context_id >> 48, context_id >> 32 & 0xFFFF), context_id & 0xFFFFFFFF


class Live:
    """One live context: its parent (the creator has none), and the workers that may have heard of it from here."""

    def __init__(self, context_id: int, parent: int | None) -> None:
        self.id = context_id
        self.parent = parent
        self.reached: set[int] = set()


class Send(NamedTuple):
    """Send ``kind`` to the worker of rank ``to``."""

    to: int
    kind: int
    context: int
    since: int


C = TypeVar("C", bound=Live)


class Lifetimes(Generic[C]):
    """The contexts that ``me`` knows of. ``make(id, parent)`` makes the record of one."""

    def __init__(self, me: Creator, make: Callable[[int, int | None], C]) -> None:
        self.me = me
        self.outbox: list[Send] = []
        self._make = make
        self._live: dict[int, C] = {}
        self._ended: dict[Creator, IntervalSet] = {}
        self._lost: set[int] = set()
        self._last = 0
        self._closed = False

    def __len__(self) -> int:
        return len(self._live)

    def get(self, context_id: int) -> C | None:
        """The live context of that id."""
        return self._live.get(context_id)

    def intervals(self) -> int:
        """Return how many intervals of ended numbers are kept."""
        return sum(len(ended.intervals()) for ended in self._ended.values())

    def take(self) -> list[Send]:
        """The instructions since the last call."""
        instructions, self.outbox = self.outbox, []
        return instructions

    # -- events

    def create(self) -> C:
        """A new context of this worker."""
        self._last += 1
        context_id = make_id(self.me, self._last)
        context = self._live[context_id] = self._make(context_id, None)
        return context

    def heard(self, context_id: int, sender: int) -> C | None:
        """The context of a message that arrived; made if it is new here, ``None`` if it has ended."""
        context = self._live.get(context_id)
        if context is None and not self._has_ended(context_id):
            context = self._live[context_id] = self._make(context_id, sender)
            if sender in self._lost:
                self._report_orphan(context)
        return context

    def reach(self, context: C, to: int) -> bool:
        """A message of the context is about to go to the worker ``to``; False if the context has ended."""
        if self._live.get(context.id) is not context:
            return False
        creator, _ = split_id(context.id)
        if to not in (self.me.rank, context.parent, creator.rank):
            context.reached.add(to)
        return True

    def release(self, context_id: int) -> C | None:
        """The creator, this worker, leaves the context; returns it if it was live."""
        _, number = split_id(context_id)
        ended = self._ended_of(self.me)
        ended.add(number)
        return self._end(context_id, ended.start_of(number), self.me.rank)

    def receive(self, sender: int, kind: int, context_id: int, since: int) -> C | None:
        """A message arrived; returns the context if it ended by it."""
        creator, number = split_id(context_id)
        if kind == RELEASE:
            if creator.rank not in self._lost and not self._closed:
                self._ended_of(creator).add_range(min(since, number), number + 1)
            return self._end(context_id, since, sender)
        context = self._live.get(context_id)
        if context is not None:
            context.reached.add(sender)
        elif creator == self.me and number in self._ended_of(creator):
            self.outbox.append(Send(sender, RELEASE, context_id, self._ended_of(creator).start_of(number)))
        return None

    def worker_lost(self, rank: int) -> list[C]:
        """Note that a worker is gone for good; return the contexts that ended with it."""
        self._lost.add(rank)
        gone = [context for context in self._live.values() if split_id(context.id)[0].rank == rank]
        for (
            context
        ) in gone:  # passed on: those that have no connection to the creator hear of its leaving late, or never
            self._end(context.id, split_id(context.id)[1], rank)
        for creator in [creator for creator in self._ended if creator.rank == rank]:
            del self._ended[creator]
        for context in self._live.values():
            if context.parent == rank:
                self._report_orphan(context)
        return gone

    def close(self) -> list[C]:
        """The agent ends; returns the contexts that were live. Later messages bring none back."""
        self._closed = True
        live, self._live = list(self._live.values()), {}
        return live

    # -- small parts

    def _has_ended(self, context_id: int) -> bool:
        creator, number = split_id(context_id)
        if self._closed or creator == self.me or creator.rank in self._lost:
            return True
        ended = self._ended.get(creator)
        return ended is not None and number in ended

    def _ended_of(self, creator: Creator) -> IntervalSet:
        ended = self._ended.get(creator)
        if ended is None:
            ended = self._ended[creator] = IntervalSet()
            ended.add(0)  # no context has this number: the first ones join it
        return ended

    def _end(self, context_id: int, since: int, teller: int) -> C | None:
        context = self._live.pop(context_id, None)
        if context is not None:
            self.outbox += [Send(to, RELEASE, context_id, since) for to in sorted(context.reached - {teller})]
        return context

    def _report_orphan(self, context: C) -> None:
        creator, _ = split_id(context.id)
        self.outbox.append(Send(creator.rank, ORPHAN, context.id, 0))
