"""Contexts: the part of a distributed forward and backward that each worker keeps, and the driver of their lifetimes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from ..core.errors import RpcError
from ..core.extend import Array, Node, Tensor
from ..proto.telegrad_pb2 import ContextMessage
from ..rpc.extend import Agent, Peer, Topic
from .lifetimes import Creator, Lifetimes, Live, Send

if TYPE_CHECKING:
    from .passes import Pass

T = TypeVar("T")


class Context(Live):
    """One context on one worker."""

    def __init__(self, context_id: int, parent: int | None = None) -> None:
        super().__init__(context_id, parent)
        self._lock = threading.Lock()  # guards the tables below; nothing else runs while it is held
        self._sends: dict[int, Node] = {}  # by message id: where gradients come in
        self._passes: dict[int, Pass] = {}  # the latest of each root worker
        self._gradients: dict[int, tuple[Tensor, Array]] = {}  # by the leaf's id(): a subclass may define __hash__

    def add_send(self, message_id: int, node: Node) -> None:
        """Expect gradients for a message."""
        with self._lock:
            self._sends[message_id] = node

    def forget_send(self, message_id: int) -> None:
        """Expect none: it did not arrive."""
        with self._lock:
            former = self._sends.pop(message_id, None)
        del former  # the graph behind it dies outside the lock

    def send(self, message_id: int) -> Node | None:
        """The send node of a message."""
        with self._lock:
            return self._sends.get(message_id)

    def sends(self) -> list[Node]:
        """The send nodes so far."""
        with self._lock:
            return list(self._sends.values())

    def latest_pass(self, root: int) -> Pass | None:
        """The latest pass here that the worker ``root`` began."""
        with self._lock:
            return self._passes.get(root)

    def replace_pass(self, fresh: Pass, former: Pass | None) -> bool:
        """Make ``fresh`` the latest pass of its root, in the place of ``former``; False if another thread was faster."""
        with self._lock:
            if self._passes.get(fresh.id[0]) is not former:
                return False
            self._passes[fresh.id[0]] = fresh
            return True

    def accumulate(self, leaf: Tensor, gradient: Array) -> None:
        """Add to the gradient of a leaf of this worker; its ``.grad`` is not touched.

        The sum is made without the lock, for it may be a user's code, and again if another thread added meanwhile.
        """
        added = False
        while not added:
            with self._lock:
                former = self._gradients.get(id(leaf))
            total = gradient if former is None else former[1] + gradient
            entry = (leaf, total)
            with self._lock:
                if added := self._gradients.get(id(leaf)) is former:
                    self._gradients[id(leaf)] = entry

    def gradients(self) -> dict[Tensor, Array]:
        """The gradient of each leaf of this worker that a backward reached."""
        with self._lock:
            entries = list(self._gradients.values())
        return dict(entries)


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
