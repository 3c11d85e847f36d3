"""Messages between workers, one small slotted class per kind, before it is bytes (``wire/``) or has a lane (``lanes/``).

A request carries a method number, and the handler of that number (``agent.server.serve``) answers. Each layer owns the numbers
of its methods and topics: below 16 they are rpc's, from 16 rref's, from 32 autograd_dist's, from 48 collective's,
from 64 pipelining's, from 128 free for users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from ..core.extend import Tensor
from ..core.futures import Future
from .lanes.base import Connection, FrameHandle
from .wire.header import restamp

NOTHING: Any = ()  # in the place of a list: most messages have none of what it would hold
NONE_YET: Any = MappingProxyType({})  # in the place of a dictionary, likewise


class Method:
    """Method numbers: what a request asks for."""

    CALL = 1
    STREAM = 2
    PULL = 3
    EXPLAIN = 4


class Topic:
    """Topics of control messages."""

    MEMBERSHIP = 1
    QUIESCENCE = 2
    CANCEL = 3
    DONE = 4
    GROUP = 5


class Outgoing(FrameHandle):
    """A request or a reply on its way out: its content while it is encoded, and then its way through flow control and lane.

    Args:
        kind: kind of the frame.
        method: which handler answers, or answered.
        call_id: number of the call.
        to: rank of the receiver.

    Attributes:
        pickled: the pickle in pieces, so that a large ``bytes`` object in it is not copied.
        tensors: those that the pickle replaced by an index.
        references: likewise.
        buffers: the raw memory of arrays in the pickle.
        extras: what interceptors tell their other half, by their number.
        notes: what interceptors keep for themselves, by their number.
        timeout: seconds that its header says, 0 for none.
        deadline: when nobody waits for it any more, in the agent's seconds; 0 for none.
        what: its text names the message in errors.
        connection: the one that it was handed to.
        size: bytes of its frame.
        parts: its frame, while it is queued for room.
        gate: where its thread waits for room: True when there is room, False when it does not go at all.
        unsent: called with it when it was queued without a thread, and does not go.
    """

    __slots__ = (
        "buffers",
        "call_id",
        "connection",
        "deadline",
        "extras",
        "flags",
        "gate",
        "kind",
        "method",
        "notes",
        "parts",
        "pickled",
        "references",
        "size",
        "tensors",
        "timeout",
        "to",
        "unsent",
        "what",
    )

    gate: Future[bool] | None
    parts: list[Any]
    unsent: Callable[[Outgoing], None]
    what: object

    def __init__(self, kind: int, method: int, call_id: int, timeout: float, to: int, deadline: float = 0.0) -> None:
        self.kind = kind
        self.method = method
        self.call_id = call_id
        self.timeout = timeout
        self.to = to
        self.deadline = deadline
        self.flags: int = 0
        self.pickled: Sequence[Any] = ()
        self.tensors: Sequence[Tensor] = ()
        self.references: Sequence[Any] = ()
        self.buffers: Sequence[Any] = ()
        self.extras: dict[int, bytes] = NONE_YET
        self.notes: dict[int, Any] = NONE_YET
        self.connection: Connection | None = None
        self.size = 0
        self.waiting = self.undo = self.gate = None
        self.in_hand = False

    def tell(self, number: int, data: bytes) -> None:
        """Send ``data`` along, for the other half of the interceptor of that number."""
        self.extras = {**self.extras, number: data}

    def keep(self, number: int, note: Any) -> None:
        """Keep ``note`` for the interceptor of that number."""
        self.notes = {**self.notes, number: note}

    def take_note(self, number: int) -> Any:
        """Return the note of the interceptor of that number, once; ``None`` if there is none."""
        return self.notes.pop(number, None) if self.notes else None

    def drop_content(self) -> None:
        """Let go of all but what ``delivered`` and ``not_delivered`` need: the frame is made."""
        self.pickled = self.tensors = self.references = self.buffers = ()

    def restamp(self, head: bytes) -> bytes:
        flow = self.connection.flow if self.connection is not None else None
        if flow is None or not self.deadline:
            return head
        return restamp(head, max(self.deadline - flow.now(), 1e-3))

    def done(self) -> bool:
        """Return whether nobody waits for it any more."""
        return False

    def dequeued(self) -> None:
        """Note that it goes now, without a thread that waited with it."""


class Incoming:
    """A request or a reply that arrived: parsed, not unpickled.

    Args:
        kind: kind of the frame.
        flags: see ``Flag``.
        method: which handler answers, or answered.
        call_id: number of the call.
        timeout: seconds that were left when it was sent; 0 for none.
        sender: rank of the sender.

    Attributes:
        arrays: the tensors' arrays.
        requires_grad: their flags.
        tensors: filled when the body is opened.
        references: filled by the interceptor that understands them.
        waits_for: futures that must have completed before the handler of a request starts; an interceptor adds them.
        problem: why the body cannot be opened here; empty if it can.
        flow: the ``Flow`` of its connection, which hears when the message was used.
        size: bytes of its frame.
    """

    __slots__ = (
        "arrays",
        "buffers",
        "call_id",
        "extras",
        "flags",
        "flow",
        "kind",
        "method",
        "pickled",
        "problem",
        "references",
        "requires_grad",
        "sender",
        "size",
        "tensors",
        "timeout",
        "waits_for",
    )

    flow: Any
    size: int

    def __init__(self, kind: int, flags: int, method: int, call_id: int, timeout: float, sender: int) -> None:
        self.kind = kind
        self.flags = flags
        self.method = method
        self.call_id = call_id
        self.timeout = timeout
        self.sender = sender
        self.problem = ""
        self.pickled: Any = b""
        self.arrays: list[Any] = NOTHING
        self.requires_grad: list[bool] = NOTHING
        self.tensors: list[Tensor] = NOTHING
        self.references: list[Any] = NOTHING
        self.buffers: list[Any] = NOTHING
        self.waits_for: Sequence[Future[Any]] = NOTHING
        self.extras: dict[int, bytes] = NONE_YET

    def drop_content(self) -> None:
        """Let go of the body, and of all that came with it."""
        self.pickled = b""
        self.arrays = self.tensors = self.references = self.buffers = NOTHING


class Interceptor:
    """Sees every request and reply that leaves; the ordered list of them is the agent's.

    What ``sending`` gives to ``message.tell(number, ...)`` the interceptor of the same number reads on the other side. All
    other hooks are called for the messages that have an extra of this number.

    Attributes:
        number: its own, other than those of the others.
        plain: its ``opening`` is quick and runs no user code, so that it can run in a reader's thread.
        needs: ``sending`` is called only where this variable is set to something that is not empty; ``None``: always.
        needs_references: ``sending`` is called only for messages that have references or notes.
    """

    number: int = 0
    plain: bool = False
    needs: ContextVar[Any] | None = None
    needs_references: bool = False

    def sending(self, message: Outgoing) -> None:
        """In the sending thread, after pickling; an exception here stops the message."""

    def arrived(self, message: Incoming) -> bool:
        """In the reader's thread, before anything is unpickled: quick, runs no user code, cannot fail.

        False: the message is void, and is ignored.
        """
        return True

    def opening(self, message: Incoming) -> None:
        """In the thread and context that will use the body, after its tensors are made and before it is unpickled."""

    def delivered(self, message: Outgoing) -> None:
        """The answer to this request arrived, so it did. Its future completes before this or after."""

    def served(self, message: Incoming) -> None:
        """Note that this request was answered, or never will be. May come twice."""

    def not_delivered(self, message: Outgoing) -> None:
        """``sending`` was called, but the message did not go out, or nobody knows whether it arrived."""
