"""Part of a context's graph on one worker: send and receive nodes, and the gradients of its leaves.

Each message that carries tensors requiring grad has a send node at its sender and a receive node at its receiver,
matched by (context, message) id. In the backward the receive node gives its gradients to the pass, which sends them. The send
node is a root that is fed when they arrive.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from ..base.errors import AutogradError
from ..core.extend import Array, Edge, Node, profiles
from ..core.profiler import record_function
from .parameter_trees import Parameters


def make_message_id(sender: int, number: int) -> int:
    """Return the id of a worker's message of that number; it is unique among the messages of a context."""
    return sender << 48 | number


def sender_of(message_id: int) -> int:
    """Return the number of the worker that sent a message."""
    return message_id >> 48


class SendNode(Node):
    """Node of the tensors of one message, at its sender. Gradients pass through it to the nodes that made the tensors.

    Args:
        edges: for each tensor, the node that made it and the number of the node's output.
        message_id: id of the message.
        receiver: number of the message's receiver.

    Attributes:
        call_id: call of the message; the latest one if it was repeated.
    """

    __slots__ = ("call_id", "message_id", "receiver")

    def __init__(self, edges: tuple[Edge | None, ...], message_id: int, receiver: int) -> None:
        super().__init__(edges, len(edges))
        self.message_id = message_id
        self.receiver = receiver
        self.call_id = 0

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Return the gradient of each tensor."""
        if profiles.get():
            with record_function("torch::distributed::autograd::SendRpcBackward"):
                return grads
        return grads


class ReceiveNode(Node):
    """Node of the tensors of one message, at its receiver. Their gradients travel back to the sender.

    Args:
        context_id: id of the message's context.
        message_id: id of the message.
        sender: number of the message's sender.
        tensors: number of tensors that require grad.

    Attributes:
        order: number of the message among all that were sent and arrived on this worker.
    """

    __slots__ = ("context_id", "message_id", "order", "sender")

    def __init__(self, context_id: int, message_id: int, sender: int, tensors: int) -> None:
        super().__init__((), tensors)
        self.context_id = context_id
        self.message_id = message_id
        self.sender = sender
        self.order = 0

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Give the gradients to the pass.

        Raises:
            AutogradError: this is no distributed backward, or one of another context.
        """
        gatherer = current_gatherer.get()
        if gatherer is None:
            raise AutogradError(
                "this graph continues on another worker; call autograd_dist.backward(context_id, [loss]) instead of "
                "loss.backward()"
            )
        if profiles.get():
            with record_function("torch::distributed::autograd::RecvRpcBackward"):
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

    @property
    def keeps_graph(self) -> bool:
        """True if another pass can go over the graph."""
        ...

    def accumulate(self, leaf: Any, gradient: Any) -> None:
        """Add to the gradient of a leaf of this worker."""
        ...

    def hold(self, leaf: Any, gradient: Any) -> None:
        """Add to the gradient of a leaf of PyTorch, which is accumulated when no more is to come to this worker."""
        ...

    def gather(self, node: ReceiveNode, gradients: Sequence[Array | None] | None) -> None:
        """Take the gradients of received tensors; ``None`` if the tensors take no part in the pass."""
        ...


# Gatherer of the distributed backward for which this thread works.
current_gatherer: ContextVar[Gatherer | None] = ContextVar("telegrad_gatherer", default=None)


class ContextGraph:
    """Send and receive nodes of a context on one worker, and the gradients that were accumulated there.

    Attributes:
        orders: numbers of the messages that are sent and arrive on this worker, and of conversions to another library.
        watches: each gets the entries that come to a pass, in order, while a step is recorded.
    """

    def __init__(self, context_id: int) -> None:
        self.context_id = context_id
        self._lock = threading.Lock()  # guards the tables below; nothing else runs while it is held
        self._sends: dict[int, SendNode] = {}  # by message id
        self._receives: dict[int, ReceiveNode] = {}  # by message id
        self._gradients: dict[int, tuple[Any, Any]] = {}  # by id() of the leaf: a subclass may define __hash__
        self.orders = itertools.count()
        self.watches: list[Callable[[Sequence[Any]], object]] = []
        self.library_part: Any = None  # for a model of another library (``edges.py``)

    def add_send(self, node: SendNode, call_id: int = 0) -> None:
        """Expect gradients for a message of a call, or for one of another call that repeats it and has the same node."""
        with self._lock:
            self._sends[node.message_id] = node
            node.call_id = call_id

    def forget_send(self, node: SendNode, call_id: int) -> None:
        """Expect no gradients for a message of a call, because it did not arrive, unless another call has repeated it."""
        with self._lock:
            if node.call_id == call_id:
                self._sends.pop(node.message_id, None)

    def send_node(self, message_id: int) -> SendNode | None:
        """Return the send node of a message; ``None`` if there is none."""
        with self._lock:
            return self._sends.get(message_id)

    def send_nodes(self) -> list[SendNode]:
        """Return the send nodes so far. What leads to them is planned, in a model of another library."""
        with self._lock:
            nodes = list(self._sends.values())
        if self.library_part is not None:  # afterwards: it may be about to hear of what is sent now
            self.library_part.plan()
        return nodes

    def add_receive(self, node: ReceiveNode) -> ReceiveNode:
        """Keep the receive node of a message that arrived, and return it; the former one if a message of its id came before.

        That one is a request which this message repeats. Its sender does not know which of the two is served.
        """
        node.order = next(self.orders)
        with self._lock:
            return self._receives.setdefault(node.message_id, node)

    def receive_node(self, message_id: int) -> ReceiveNode | None:
        """Return the receive node of a message; ``None`` if there is none."""
        with self._lock:
            return self._receives.get(message_id)

    def receive_nodes(self) -> list[ReceiveNode]:
        """Return the receive nodes so far."""
        with self._lock:
            return list(self._receives.values())

    def accumulate(self, leaf: Any, gradient: Any) -> None:
        """Add to the gradient of a leaf of this worker, ours, PyTorch's or JAX's. The leaf's ``.grad`` does not change.

        The sum is computed without the lock, because it may be a user's code. If another thread has added a gradient during
        that time, the sum is computed again.
        """
        first = (leaf, gradient)
        with self._lock:
            former = self._gradients.setdefault(id(leaf), first)
        while former is not first:
            total = (leaf, sum_of(leaf, former[1], gradient))
            with self._lock:
                latest = self._gradients[id(leaf)]
                if latest is former:
                    self._gradients[id(leaf)] = total
                    return
            former = latest

    def gradients_of(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the gradient of each of these leaves; ``None`` for those that no backward reached."""
        with self._lock:
            found = self._gradients.get
            return [None if (entry := found(id(leaf))) is None else entry[1] for leaf in leaves]

    def gradients(self) -> dict[Any, Any]:
        """Return the gradient of each leaf of this worker that a backward reached."""
        with self._lock:
            entries = list(self._gradients.values())
        return dict(entries)


def sum_of(leaf: Any, former: Any, gradient: Any) -> Any:
    """Return the sum of two gradients of a leaf. PyTorch adds a sparse one to a dense one in this order only.

    Args:
        leaf: a tensor of this library or of PyTorch, or a set of parameters.
        former: its gradient so far.
        gradient: what is added.
    """
    if type(leaf) is Parameters:
        return leaf.sum(former, gradient)
    if getattr(former, "is_sparse", False) and not getattr(gradient, "is_sparse", True):
        return gradient + former
    return former + gradient
