"""The part of a context's graph on one worker: send and receive nodes, and the gradients of its leaves.

Each message that carries tensors requiring grad has a send node on the sender's side and a receive node on the receiver's,
matched by (context, message) id. In the backward the receive node hands the gradients that came to it to the pass, which sends
them, and the send node is a root that is fed when they arrive.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Protocol

from ..core.errors import AutogradError
from ..core.extend import Array, Edge, Node, Tensor, profiles
from ..core.profiler import record_function


def make_message_id(sender: int, number: int) -> int:
    """Return the id of a worker's message number ``number``, unique among the messages of a context."""
    return sender << 48 | number


def sender_of(message_id: int) -> int:
    """Return the rank of the worker that sent a message."""
    return message_id >> 48


class SendNode(Node):
    """The tensors of one message, on the side that sent them; gradients pass through to where each came from.

    Args:
        edges: for each tensor, the node that made it and its output.
        message_id: the message.
        receiver: rank of the worker that got it.
    """

    __slots__ = ("message_id", "receiver")

    def __init__(self, edges: tuple[Edge | None, ...], message_id: int, receiver: int) -> None:
        super().__init__(edges, len(edges))
        self.message_id = message_id
        self.receiver = receiver

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Hand each tensor its gradient."""
        if profiles.get():
            with record_function("distributed::autograd::SendRpcBackward"):
                return grads
        return grads


class ReceiveNode(Node):
    """The tensors of one message, on the side that received them; their gradients travel back to the sender.

    Args:
        context_id: the context of the message.
        message_id: the message.
        sender: rank of the worker that sent it.
        tensors: number of tensors that require grad.
    """

    __slots__ = ("context_id", "message_id", "sender")

    def __init__(self, context_id: int, message_id: int, sender: int, tensors: int) -> None:
        super().__init__((), tensors)
        self.context_id = context_id
        self.message_id = message_id
        self.sender = sender

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Hand the gradients to the pass.

        Raises:
            AutogradError: no distributed backward is under way, or one of another context.
        """
        gatherer = current_gatherer.get()
        if gatherer is None:
            raise AutogradError(
                "this graph continues on another worker; call autograd_dist.backward(context_id, [loss]) instead of "
                "loss.backward()"
            )
        if profiles.get():
            with record_function("distributed::autograd::RecvRpcBackward"):
                gatherer.gather(self, grads)
        else:
            gatherer.gather(self, grads)
        return ()

    def left_out(self) -> None:
        """Tell the pass that the sender will get no gradients."""
        if (gatherer := current_gatherer.get()) is not None:
            gatherer.gather(self, None)


class Gatherer(Protocol):
    """Gatherer of the gradients that leave a worker."""

    def gather(self, node: ReceiveNode, gradients: Sequence[Array | None] | None) -> None:
        """Take the gradients of received tensors; ``None`` says that these take no part in the pass."""
        ...


# Of the distributed backward that this thread works for.
current_gatherer: ContextVar[Gatherer | None] = ContextVar("telegrad_gatherer", default=None)


class ContextGraph:
    """The send and receive nodes of a context on one worker, and the gradients that were accumulated there."""

    def __init__(self, context_id: int) -> None:
        self.context_id = context_id
        self._lock = threading.Lock()  # guards the tables below; nothing else runs while it is held
        self._sends: dict[int, SendNode] = {}  # by message id
        self._receives: dict[int, ReceiveNode] = {}  # by message id
        self._gradients: dict[int, tuple[Tensor, Array]] = {}  # by the leaf's id(): a subclass may define __hash__

    def add_send(self, node: SendNode) -> None:
        """Expect gradients for a message."""
        with self._lock:
            self._sends[node.message_id] = node

    def forget_send(self, message_id: int) -> None:
        """Expect no gradients for a message: it did not arrive."""
        with self._lock:
            former = self._sends.pop(message_id, None)
        del former  # the graph behind it dies outside the lock

    def send(self, message_id: int) -> SendNode | None:
        """Return the send node of a message."""
        with self._lock:
            return self._sends.get(message_id)

    def sends(self) -> list[SendNode]:
        """Return the send nodes so far."""
        with self._lock:
            return list(self._sends.values())

    def add_receive(self, node: ReceiveNode) -> None:
        """Keep the receive node of a message that arrived."""
        with self._lock:
            self._receives[node.message_id] = node

    def receive(self, message_id: int) -> ReceiveNode | None:
        """Return the receive node of a message."""
        with self._lock:
            return self._receives.get(message_id)

    def receives(self) -> list[ReceiveNode]:
        """Return the receive nodes so far."""
        with self._lock:
            return list(self._receives.values())

    def accumulate(self, leaf: Tensor, gradient: Array) -> None:
        """Add to the gradient of a leaf of this worker; its ``.grad`` is not touched.

        The sum is made without the lock, for it may be a user's code, and again if another thread added meanwhile.
        """
        first = (leaf, gradient)
        with self._lock:
            former = self._gradients.setdefault(id(leaf), first)
        while former is not first:
            total = (leaf, former[1] + gradient)
            with self._lock:
                latest = self._gradients[id(leaf)]
                if latest is former:
                    self._gradients[id(leaf)] = total
                    return
            former = latest

    def gradients_of(self, leaves: Sequence[Tensor]) -> list[Array | None]:
        """Return the gradient of each of these leaves; ``None`` for those that no backward reached."""
        with self._lock:
            entries = [self._gradients.get(id(leaf)) for leaf in leaves]
        return [None if entry is None else entry[1] for entry in entries]

    def gradients(self) -> dict[Tensor, Array]:
        """Return the gradient of each leaf of this worker that a backward reached."""
        with self._lock:
            entries = list(self._gradients.values())
        return dict(entries)
