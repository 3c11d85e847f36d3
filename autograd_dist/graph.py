"""The part of a context's graph on one worker: send and receive nodes, and the gradients of its leaves.

Each message that carries tensors requiring grad has a send node on the sender's side and a receive node on the receiver's,
matched by (context, message) id. In the backward the receive node sends a request with the gradients that came to it, and the
send node is a root that is fed when they arrive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeAlias

from ..core.errors import AutogradError
from ..core.extend import Array, Edge, Node, Tensor


class SendNode(Node):
    """The tensors of one message, on the side that sent them; gradients pass through to where each came from.

    Args:
        edges: for each tensor, the node that made it and its output.
        message_id: the message.
        receiver: name of the worker that got it, for errors.
    """

    __slots__ = ("message_id", "receiver")

    def __init__(self, edges: tuple[Edge | None, ...], message_id: int, receiver: str) -> None:
        super().__init__(edges, len(edges))
        self.message_id = message_id
        self.receiver = receiver

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Hand each tensor its gradient."""
        return grads

    def __repr__(self) -> str:
        return f"{self.num_inputs} tensor{'s' * (self.num_inputs > 1)} sent to worker {self.receiver!r}"


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
        """Send the gradients.

        Raises:
            AutogradError: no distributed backward is under way, or one of another context.
        """
        propagate = current_propagate.get()
        if propagate is None:
            raise AutogradError(
                "this graph continues on another worker; call autograd_dist.backward(context_id, [loss]) instead of "
                "loss.backward()"
            )
        propagate(self, grads)
        return ()


Propagate: TypeAlias = Callable[[ReceiveNode, Sequence[Array | None]], None]
# Sends the gradients of a receive node, in the backward that this thread works for.
current_propagate: ContextVar[Propagate | None] = ContextVar("telegrad_propagate", default=None)


class ContextGraph:
    """The send nodes of a context on one worker, and the gradients that were accumulated there."""

    def __init__(self, context_id: int) -> None:
        self.context_id = context_id
        self._lock = threading.Lock()  # guards the tables below; nothing else runs while it is held
        self._sends: dict[int, SendNode] = {}  # by message id
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
        """Return the gradient of each leaf of this worker that a backward reached."""
        with self._lock:
            entries = list(self._gradients.values())
        return dict(entries)
