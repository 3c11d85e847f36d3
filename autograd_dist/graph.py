"""Where the graph crosses a wire: a send node on the sender's side of a message, a receive node on the receiver's.

Each message that carries tensors requiring grad has one of each, matched by (context, message) id. In the backward the
receive node issues a message with the gradients that came to it, and the send node is a root that is fed when it arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..core.errors import AutogradError
from ..core.extend import Array, Edge, Node

if TYPE_CHECKING:
    from .passes import Pass

current_pass: ContextVar[Pass | None] = ContextVar("telegrad_backward_pass", default=None)


class SendNode(Node):
    """The tensors of one message, on the side that sent them; gradients pass through to where each came from."""

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
    """The tensors of one message, on the side that received them; their gradients travel back to the sender."""

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
        backward = current_pass.get()
        if backward is None:
            raise AutogradError(
                "this graph continues on another worker; call autograd_dist.backward(context_id, [loss]) instead of "
                "loss.backward()"
            )
        backward.propagate(self, grads)
        return ()
