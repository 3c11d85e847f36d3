"""Contexts: what one distributed forward and backward leaves on each worker that it reaches.

A context id has 64 bits: worker 16, incarnation 16, counter 32, so ids of different workers and lives never meet. A context
ends on every worker it reached when its creator leaves it: each worker passes the end on to those that it brought in. If one
of them is lost, those it brought in report to the creator; if the creator is lost, its contexts are over.
"""

from __future__ import annotations

import itertools
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import RpcError
from ..core.extend import Array, Node, Tensor
from ..proto.telegrad_pb2 import ContextMessage
from ..rpc.extend import Agent, Peer, Topic

if TYPE_CHECKING:
    from .passes import Pass

RELEASE, ORPHAN = 1, 2


class Creator(NamedTuple):
    """Whose contexts: one life of one worker."""

    rank: int
    incarnation: int


def make_id(creator: Creator, counter: int) -> int:
    """The 64-bit id of a creator's context number ``counter``."""
    return creator.rank << 48 | creator.incarnation << 32 | counter


def split_id(context_id: int) -> tuple[Creator, int]:
    """The reverse of ``make_id``."""
    return Creator(context_id >> 48, context_id >> 32 & 0xFFFF), context_id & 0xFFFFFFFF


class Context:
    """One context on one worker."""

    def __init__(self, context_id: int) -> None:
        self.id = context_id
        self.lock = threading.Lock()
        self.sends: dict[int, Node] = {}  # by message id: where gradients come in
        self.reached: set[int] = set()  # workers that heard of the context from us
        self.heard_from: set[int] = set()
        self.passes: dict[tuple[int, int], Pass] = {}  # by (root worker, number)
        self._gradients: dict[Tensor, Array] = {}

    def accumulate(self, leaf: Tensor, gradient: Array) -> None:
        """Add to the gradient of a leaf of this worker; its ``.grad`` is not touched."""
        with self.lock:
            present = self._gradients.get(leaf)
            self._gradients[leaf] = gradient if present is None else present + gradient

    def gradients(self) -> dict[Tensor, Array]:
        """The gradient of each leaf of this worker that a backward reached."""
        with self.lock:
            return dict(self._gradients)


class Ended:
    """Which contexts of one creator are over: all below ``floor``, and some above."""

    __slots__ = ("above", "floor")

    def __init__(self) -> None:
        self.floor = 0
        self.above: set[int] = set()

    def add(self, number: int, oldest: int) -> None:
        """Number ``number`` is over, and everything below ``oldest``."""
        self.floor = max(self.floor, oldest)
        self.above.add(number)
        self.above = {other for other in self.above if other >= self.floor}

    def __contains__(self, number: int) -> bool:
        return number < self.floor or number in self.above


current_context: ContextVar[Context | None] = ContextVar("telegrad_autograd_context", default=None)


class Contexts:
    """The contexts of one agent."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.me = Creator(agent.rank, agent.record.incarnation)
        self._contexts: dict[int, Context] = {}
        self._ended: dict[Creator, Ended] = {}
        self._lock = threading.Lock()
        self._counter = itertools.count(1)
        self.message_ids = itertools.count(1)
        agent.courier.on(Topic.CONTEXT, self._told)
        agent.membership.on_lost.append(self._lost)
        agent.on_close.append(self._contexts.clear)
        agent.debug_sections["contexts"] = lambda: len(self._contexts)

    def create(self) -> Context:
        """A new context of this worker."""
        self.agent.check_open()
        context = Context(make_id(self.me, next(self._counter)))
        self._contexts[context.id] = context
        return context

    def find(self, context_id: int) -> Context:
        """A context that is not over.

        Raises:
            RpcError: there is none.
        """
        context = self._contexts.get(context_id) if isinstance(context_id, int) else None
        if context is None:
            raise RpcError(
                f"there is no autograd context {context_id!r} on worker {self.agent.name!r} (it is over, or was never here); "
                f"work inside `with autograd_dist.context() as context_id:`"
            )
        return context

    def reached_by(self, context_id: int, sender: int) -> Context | None:
        """The context that a message belongs to, made if it is new here; ``None`` if it is over."""
        creator, number = split_id(context_id)
        with self._lock:
            ended = self._ended.get(creator)
            if ended is not None and number in ended:
                return None
            context = self._contexts.get(context_id)
            if context is None:
                if creator == self.me:
                    return None
                context = self._contexts[context_id] = Context(context_id)
        context.heard_from.add(sender)
        return context

    def is_live(self, context: Context) -> bool:
        """Whether it is not over."""
        return context.id in self._contexts

    def release(self, context_id: int, oldest: int | None = None) -> None:
        """End a context here and on every worker that heard of it from here."""
        creator, number = split_id(context_id)
        with self._lock:
            context = self._contexts.pop(context_id, None)
            oldest = self._oldest() if oldest is None else oldest
            if creator != self.me:
                self._ended.setdefault(creator, Ended()).add(number, oldest)
        if context is not None:
            for rank in context.reached:
                self._post(rank, RELEASE, context_id, oldest)

    def _oldest(self) -> int:
        mine = [split_id(context_id) for context_id in self._contexts]
        return min((number for creator, number in mine if creator == self.me), default=0)

    def _told(self, peer: Peer, payload: bytes) -> None:
        message = ContextMessage.FromString(payload)
        if message.kind == RELEASE:
            self.release(message.context, message.oldest)
        elif (context := self._contexts.get(message.context)) is not None:
            context.reached.add(peer.info.id)
        else:
            self._post(peer.info.id, RELEASE, message.context, 0)

    def _lost(self, peer: Peer) -> None:
        gone = Creator(peer.info.id, peer.record.incarnation)
        for context in list(self._contexts.values()):
            creator, _ = split_id(context.id)
            if creator == gone:
                self.release(context.id, 0)
            elif creator != self.me and peer.info.id in context.heard_from:
                self._post(creator.rank, ORPHAN, context.id, 0)

    def _post(self, rank: int, kind: int, context_id: int, oldest: int) -> None:
        if rank != self.agent.rank:
            message = ContextMessage(kind=kind, context=context_id, oldest=oldest)
            self.agent.courier.post(self.agent.peers.at(rank), Topic.CONTEXT, message.SerializeToString())


def contexts_of(agent: Agent) -> Contexts:
    """The contexts of an agent."""
    return agent.part(Contexts)
