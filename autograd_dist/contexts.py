"""Contexts: the part of a distributed forward and backward that each worker keeps, and the driver of their lifetimes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from ..core.errors import RpcError
from ..proto.autograd_dist_pb2 import ContextMessage
from ..rpc.extend import Agent, Peer
from .backward_pass import BackwardPass
from .graph import ContextGraph
from .lifetimes import Creator, Lifetimes, Live, Send
from .numbers import Topic

T = TypeVar("T")


class Context(Live):
    """One context on one worker: its lifetime, its graph, and its backward passes."""

    def __init__(self, context_id: int, parent: int | None = None) -> None:
        super().__init__(context_id, parent)
        self.graph = ContextGraph(context_id)
        self._lock = threading.Lock()
        self._passes: dict[int, BackwardPass] = {}  # the latest of each root worker

    def latest_pass(self, root: int) -> BackwardPass | None:
        """Return the latest pass here that the worker ``root`` began."""
        with self._lock:
            return self._passes.get(root)

    def replace_pass(self, fresh: BackwardPass, former: BackwardPass | None) -> bool:
        """Make ``fresh`` the latest pass of its root, in the place of ``former``; False if another thread was faster."""
        with self._lock:
            if self._passes.get(fresh.id[0]) is not former:
                return False
            self._passes[fresh.id[0]] = fresh
            return True


current_context: ContextVar[Context | None] = ContextVar("telegrad_autograd_context", default=None)


class Contexts:
    """The contexts of one agent: asks the machine under a lock, and carries its instructions out outside of it."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.message_ids = itertools.count(1)
        self._machine = Lifetimes(Creator(agent.rank, agent.record.incarnation), Context)
        self._lock = threading.Lock()
        agent.courier.on(Topic.CONTEXT, self._told)
        agent.membership.on_lost.append(self._lost)
        agent.on_close.append(self._close)
        agent.debug_sections["contexts"] = lambda: len(self._machine)

    def create(self) -> Context:
        """A new context of this worker."""
        self.agent.check_open()
        return self._step(self._machine.create)

    def find(self, context_id: int) -> Context:
        """A live context.

        Raises:
            RpcError: there is none.
        """
        context = self._step(lambda: self._machine.get(context_id)) if isinstance(context_id, int) else None
        if context is None:
            raise RpcError(
                f"there is no autograd context {context_id!r} on worker {self.agent.name!r} (it is over, or was never here); "
                f"work inside `with autograd_dist.context() as context_id:`"
            )
        return context

    def heard(self, context_id: int, sender: int) -> Context | None:
        """The context that a message belongs to, made if it is new here; ``None`` if it has ended."""
        return self._step(lambda: self._machine.heard(context_id, sender))

    def reach(self, context: Context, to: int) -> bool:
        """Note that a message of the context goes to ``to``; False if the context has ended."""
        return self._step(lambda: self._machine.reach(context, to))

    def partners(self, context: Context) -> list[int]:
        """Return the ranks of the workers that this one brought into the context, or was brought in by."""
        parent = set() if context.parent is None else {context.parent}
        return self._step(lambda: sorted(context.reached | parent))

    def release(self, context_id: int) -> None:
        """End a context of this worker, here and on every worker that heard of it."""
        self._step(lambda: self._machine.release(context_id))

    def _told(self, peer: Peer, payload: bytes) -> None:
        message = ContextMessage.FromString(payload)
        self._step(lambda: self._machine.receive(peer.info.id, message.kind, message.context, message.since))

    def _lost(self, peer: Peer) -> None:
        self._step(lambda: self._machine.worker_lost(peer.info.id))

    def _close(self) -> None:
        self._step(self._machine.close)

    def _step(self, event: Callable[[], T]) -> T:
        # What ended is in the result, so that it dies after the lock was released: it may hold a user's objects.
        with self._lock:
            result = event()
            instructions = self._machine.take() if self._machine.outbox else ()
        for instruction in instructions:
            self._send(instruction)
        return result

    def _send(self, instruction: Send) -> None:
        message = ContextMessage(kind=instruction.kind, context=instruction.context, since=instruction.since)
        self.agent.courier.post(self.agent.peers.at(instruction.to), Topic.CONTEXT, message.SerializeToString())


def contexts_of(agent: Agent) -> Contexts:
    """The contexts of an agent."""
    return agent.part(Contexts)
