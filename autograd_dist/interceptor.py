"""Autograd in messages: a message that is sent inside a context carries the context's id, and its tensors stay connected."""

from __future__ import annotations

import struct
from functools import partial
from threading import get_ident

from ..core.extend import is_grad_enabled
from ..rpc.extend import REPEATED, FrameKind, Incoming, Interceptor, Outgoing, ServerCall
from .anomaly import enter_mode, pack_mode
from .contexts import Context, Contexts
from .current_context import current_context
from .edges import edge_of
from .graph import ReceiveNode, SendNode, make_message_id
from .lifetimes import Release
from .news import RIDING
from .numbers import GRADIENT_EXTRA, GradientMethod

# Context id, message id (0: no tensor of the message requires grad). In a request ``pack_mode()`` and ``News.riding`` follow.
MESSAGE_EXTRA = struct.Struct("<QQ")
NAMED_IN_BODY = (GradientMethod.PROPAGATE, GradientMethod.STEP)  # their context: its id is in the body
PART = struct.Struct("<Q")  # in a request of a step that is recorded: the caller's number for the part of the callee


class AutogradInterceptor(Interceptor):
    """Interceptor that records the send and receive nodes of one agent."""

    number = GRADIENT_EXTRA
    plain = True
    needs = current_context

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts

    def sending(self, message: Outgoing) -> None:
        """Put the context's id into the message, and keep a send node for the tensors that require grad."""
        context = current_context.get()
        assert context is not None  # see ``needs``
        if message.method in NAMED_IN_BODY or not self.contexts.reach(context, message.to):
            return
        node = self._record(context, message)
        message.keep(GRADIENT_EXTRA, (context, node))
        more = b""
        if message.kind == FrameKind.REQUEST:
            recorded = context.recorded.get(get_ident())
            part = 0 if recorded is None else recorded.sending(message)
            more = pack_mode() + (PART.pack(part) if part else b"") + self.contexts.news.riding(message.to)
        message.tell(GRADIENT_EXTRA, MESSAGE_EXTRA.pack(context.id, 0 if node is None else node.message_id) + more)

    def _record(self, context: Context, message: Outgoing) -> SendNode | None:
        """Keep a send node for a message; that of the request which it repeats, because either of the two may be served."""
        repeated = message.attached.notes.get(REPEATED)
        if repeated is not None and GRADIENT_EXTRA in repeated:
            node: SendNode | None = repeated[GRADIENT_EXTRA][1]
        else:
            node = self._make_node(context, message)
        if node is not None:
            context.graph.add_send(node, message.call_id)
        return node

    def _make_node(self, context: Context, message: Outgoing) -> SendNode | None:
        tensors, graph = message.attached.tensors if is_grad_enabled() else (), context.graph
        edges = tuple([edge for each in tensors if each._requires_grad and (edge := edge_of(graph, each)) is not None])
        if not edges:
            return None
        message_id = make_message_id(self.contexts.agent.number, next(self.contexts.message_ids))
        node = SendNode(edges, message_id, message.to)
        if (recorded := context.recorded.get(get_ident())) is not None:
            recorded.sent(node)
        return node

    def replaced(self, message: Outgoing) -> None:
        """Expect no gradients for an answer in whose place another one was sent."""
        self.not_delivered(message)

    def not_delivered(self, message: Outgoing) -> None:
        """Expect no gradients for a message that was not delivered."""
        context, node = message.attached.notes.get(GRADIENT_EXTRA, (None, None))
        if node is not None:
            context.graph.forget_send(node, message.call_id)

    def entering(self, message: Incoming) -> None:
        """Enter the context of a request, for requests that are made for it before it is opened."""
        context_id, _ = MESSAGE_EXTRA.unpack_from(message.extras[GRADIENT_EXTRA])
        current_context.set(self.contexts.join(context_id, message.session.number))

    def opening(self, message: Incoming) -> None:
        """Enter the context, and make the tensors that require grad outputs of a receive node."""
        extra = message.extras.get(GRADIENT_EXTRA)
        if extra is None:
            return
        context_id, message_id = MESSAGE_EXTRA.unpack_from(extra)
        more = extra[MESSAGE_EXTRA.size :]
        if len(more) >= RIDING.size:
            self.contexts.heard(message.session.number, Release(*RIDING.unpack(more[-RIDING.size :])))
            more = more[: -RIDING.size]
        if len(more) >= PART.size:
            self._record_part(message, *PART.unpack(more[-PART.size :]))
            more = more[: -PART.size]
        context = self.contexts.join(context_id, message.session.number)
        if context is None:
            return
        if message.kind == FrameKind.REQUEST:
            current_context.set(context)
            enter_mode(more)
        if message_id:
            _connect(message, context, message_id)
        else:
            _detach(message)

    def _record_part(self, message: Incoming, number: int) -> None:
        """Let a request's function be recorded, as a part of its caller's step."""
        from .captured.parts import CapturedParts  # here: few programs compile their steps

        assert isinstance(message, ServerCall)
        record = self.contexts.agent.part(CapturedParts).record
        message.kept = partial(record, message, number, message.attached.tensors)


def _connect(message: Incoming, context: Context, message_id: int) -> None:
    """Make the tensors that require grad outputs of a receive node. They are new leaves, which nothing else refers to."""
    marked = [index for index, flag in enumerate(message.attached.requires_grad) if flag]
    node = context.graph.add_receive(ReceiveNode(context.id, message_id, message.session.number, len(marked)))
    for slot, index in enumerate(marked):
        message.attached.tensors[index]._edge = (node, slot)


def _detach(message: Incoming) -> None:
    """Let no tensor require grad: the sender was under ``no_grad``, so no gradients will be sent back."""
    for tensor in message.attached.tensors:
        tensor._requires_grad = False
