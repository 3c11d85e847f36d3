"""Messages between workers, apart from their bytes (``wire/``) and from how they travel (``lanes/``).

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
from .wire.header import Kind, restamp

NOTHING: Any = ()  # instead of an empty list: most messages need none, and to make one takes time
NONE_YET: Any = MappingProxyType({})  # instead of an empty dictionary


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
    """Request or reply that is sent: its content, until it is encoded, and its state in flow control and lane.

    Args:
        kind: kind of the frame.
        method: number of the method, whose handler answers.
        call_id: number of the call.
        to: rank of the receiver.

    Attributes:
        pickled: the pickle in pieces, so that a large ``bytes`` object in it is not copied.
        tensors: those that the pickle replaced by an index.
        references: those that the pickle replaced by an index.
        buffers: the raw memory of arrays in the pickle.
        extras: bytes that interceptors send along, by the interceptor's number.
        notes: objects that interceptors keep at the sender, by the interceptor's number.
        timeout: seconds in its header, 0 for none.
        deadline: time after which nobody waits for it, in the agent's seconds; 0 for none.
        what: its text names the message in errors.
        connection: the connection that it was given to.
        size: bytes of its frame.
        parts: its frame, while it is queued for room.
        gate: future for which its thread waits: True when there is room, False when it cannot be sent.
        unsent: called with it if no thread waits with it, and it cannot be sent.
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
        """Send ``data`` along, for the receiver's interceptor of that number."""
        self.extras = {**self.extras, number: data}

    def keep(self, number: int, note: Any) -> None:
        """Keep ``note`` at the sender, for its interceptor of that number."""
        self.notes = {**self.notes, number: note}

    def take_note(self, number: int) -> Any:
        """Remove and return the note of the interceptor of that number; ``None`` if there is none."""
        return self.notes.pop(number, None) if self.notes else None

    def drop_content(self) -> None:
        """Drop the content, because the frame is made. ``delivered`` and ``not_delivered`` do not need it."""
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
        """Note that it is sent now."""


class Attachments:
    """Attachments of a message that arrived, beside its pickle. Most messages have none: they share ``NO_ATTACHMENTS``.

    The empty values are the class's, so that one is made without a call of Python code.

    Attributes:
        arrays: the tensors' arrays.
        requires_grad: the tensors' flags.
        tensors: made when the body is opened.
        references: made by the interceptor of references.
        buffers: the memory of arrays in the pickle.
        waits_for: futures that must complete before the handler of a request starts; an interceptor adds them.
        problem: why the body cannot be opened here; empty if it can.
    """

    arrays: list[Any] = NOTHING
    requires_grad: list[bool] = NOTHING
    tensors: list[Tensor] = NOTHING
    references: list[Any] = NOTHING
    buffers: list[Any] = NOTHING
    waits_for: Sequence[Future[Any]] = NOTHING
    problem: str = ""


NO_ATTACHMENTS = Attachments()


class Incoming:
    """Reply that arrived, or a request (``ServerCall``): parsed, not unpickled. ``wire.frames.decode`` fills it.

    Attributes:
        kind: kind of its frame.
        connection: the connection on which it came.
        flags: see ``Flag``.
        method: number of the method, whose handler answers.
        call_id: number of the call.
        timeout: seconds that were left when it was sent; 0 for none.
        pickled: the pickle of its body.
        attached: what came beside the pickle.
        extras: bytes for interceptors, by the interceptor's number.
        size: bytes of its frame.
    """

    __slots__ = ("attached", "call_id", "connection", "extras", "flags", "method", "pickled", "size", "timeout")

    kind = Kind.REPLY
    flags: int
    method: int
    call_id: int
    timeout: float

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.size = 0
        self.pickled: Any = b""
        self.attached = NO_ATTACHMENTS
        self.extras: dict[int, bytes] = NONE_YET

    @property
    def sender(self) -> int:
        """Number of the worker that sent it."""
        number: int = self.connection.number
        return number

    def drop_content(self) -> None:
        """Drop the body and everything that came with it."""
        self.pickled, self.attached = b"", NO_ATTACHMENTS


class Interceptor:
    """Hooks that are called with the messages of one agent. An agent has an ordered list of interceptors.

    ``sending`` is called for every request and reply that leaves. The bytes that it gives to ``message.tell(number, ...)``
    are an extra of the message, which the receiver's interceptor of the same number reads. The other hooks are called for
    messages that have an extra of this number.

    Attributes:
        number: its number; each interceptor has another.
        plain: its ``opening`` is quick and runs no user code, so that it can run in a reader's thread.
        needs: ``sending`` is called only where this variable has a value that is not empty; ``None``: always.
        needs_references: ``sending`` is called only for messages that have references or notes.
        answers: its extra of a request wants one of the reply, which is then a message of its own, even if it is ``None``.
    """

    number: int = 0
    plain: bool = False
    needs: ContextVar[Any] | None = None
    needs_references: bool = False
    answers: bool = False

    def sending(self, message: Outgoing) -> None:
        """Handle a message that leaves. In the sending thread, after pickling; if this raises, the message is not sent."""

    def arrived(self, message: Incoming) -> bool:
        """Handle a message that arrived; return False to have it ignored.

        In the reader's thread, before anything is unpickled: quick, runs no user code, cannot fail.
        """
        return True

    def opening(self, message: Incoming) -> None:
        """Handle a message whose body is opened, after its tensors are made and before it is unpickled.

        In the thread and context that will use the body.
        """

    def delivered(self, message: Outgoing) -> None:
        """Note that this request has arrived: its answer came. Its future completes before this or after."""

    def served(self, message: Incoming) -> None:
        """Note that this request was answered or dropped. May be called twice."""

    def not_delivered(self, message: Outgoing) -> None:
        """Note that this message was not sent, or may not have arrived. Called only after ``sending``."""
