"""Messages between workers, apart from their bytes (``wire/``) and from how they travel (``lanes/``).

A request carries a method number, and the handler of that number (``agent.server.serve``) answers. Each layer owns the numbers
of its methods and topics: below 16 they are rpc's, from 16 rref's, from 32 autograd_dist's, from 48 collective's,
from 64 pipelining's, from 128 free for users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from ..call_states import NEW
from ..lanes.frame import FrameHandle
from .header import FrameKind, restamp

if TYPE_CHECKING:
    from ...core.extend import Tensor
    from ...core.futures import Future
    from ..lanes.session import Session

NOTHING: Any = ()  # instead of an empty list: most messages need none, and to make one takes time
NONE_YET: Any = MappingProxyType({})  # instead of an empty dictionary
REPEATED = -1  # number of a note: the notes of the first message with the same body, which may have arrived


class Method:
    """Method numbers: what a request asks for."""

    CALL = 1
    STREAM = 2
    PULL = 3
    EXPLAIN = 4
    OBSERVE = 5
    DEBUG = 6
    READ = 7
    WRITE = 8
    MESH = 9
    SOURCES = 10
    LEND = 11


OF_BUFFERS = frozenset((Method.READ, Method.WRITE, Method.LEND))
"""Requests whose arrays are the program's own memory, or are copied there at once: no budget counts them."""

QUESTIONS = frozenset((Method.EXPLAIN, Method.OBSERVE, Method.DEBUG))
"""Requests about a worker itself, which a reader's thread answers. They and their answers go outside of the windows: a worker
whose windows are full can be asked why. ``Observer`` limits how many are under way, ``Debugger`` its own."""

OUTSIDE_WINDOWS = QUESTIONS | OF_BUFFERS
"""Requests that go outside of the windows, as do their answers. Those of buffers take no memory that a window would bound."""


class Topic:
    """Topics of control messages."""

    MEMBERSHIP = 1
    QUIESCENCE = 2
    CANCEL = 3
    DONE = 4
    GROUP = 5
    HELD = 6
    MESH = 7
    FETCH = 8


class Awaited(Protocol):
    """Value that a request waits for at its callee, before it takes a thread.

    Attributes:
        future: completes when the value is there, or is known not to come.
    """

    future: Future[Any]

    def begin(self, call: Any) -> None:
        """Ask for the value, for a ``ServerCall``. In a reader's thread: quick, runs no user code, cannot fail."""
        ...


class Attachments:
    """Attachments of a message, beside its pickle. Most messages have none: they share ``NO_ATTACHMENTS``.

    The empty values are the class's, so that one is made without a call of Python code.

    Attributes:
        tensors: those that the pickle replaced by an index. At the receiver they are made when the body is opened.
        references: those that the pickle replaced by an index. At the receiver an interceptor makes them.
        buffers: the raw memory of arrays in the pickle.
        extras: at the sender, bytes that interceptors send along, by the interceptor's number.
        notes: at the sender, objects that interceptors keep there, by the interceptor's number.
        unready: at the sender, futures in the body of a request that had no value, each with the name of its part.
        arrays: at the receiver, the tensors' arrays.
        requires_grad: at the receiver, the tensors' flags.
        waits_for: at the receiver, futures that must complete before the handler of a request starts, mostly of values.
        awaited: at the receiver, values that are asked for when the request is accepted. Their futures are in ``waits_for``.
        value: at the receiver, what an interceptor has found for the handler of a request.
        problem: at the receiver, why the body cannot be opened; empty if it can.
    """

    tensors: Sequence[Tensor] = NOTHING
    references: Any = NOTHING
    buffers: Sequence[Any] = NOTHING
    extras: dict[int, bytes] = NONE_YET
    notes: dict[int, Any] = NONE_YET
    unready: Sequence[tuple[str, Future[Any]]] = NOTHING
    arrays: list[Any] = NOTHING
    requires_grad: list[bool] = NOTHING
    waits_for: Sequence[Future[Any]] = NOTHING
    awaited: Sequence[Awaited] = NOTHING
    value: Any = None
    problem: str = ""


NO_ATTACHMENTS = Attachments()


class Queued:
    """Record of a message that waits for room.

    Attributes:
        parts: its frame.
        unsent: called with it if no thread waits with it, and the session closes before it is sent.
        gate: future for which its thread waits: True when there is room, False when it cannot be sent; ``None`` without one.
    """

    __slots__ = ("gate", "parts", "unsent")

    def __init__(self, parts: list[Any], unsent: Callable[[Outgoing], None], gate: Future[bool] | None) -> None:
        self.parts = parts
        self.unsent = unsent
        self.gate = gate

    def withdraw(self) -> bool:
        """Return False: the queue has given it room, and the thread that sends it gives that back."""
        return False


class Outgoing(FrameHandle):
    """Request or reply that is sent: its content, until it is encoded, and its state in flow control and lane.

    Args:
        method: number of the method, whose handler answers.
        call_id: number of the call.
        timeout: seconds in its header, 0 for none.
        to: rank of the receiver.

    Attributes:
        kind: kind of its frame.
        pickled: the pickle in pieces, so that a large ``bytes`` object in it is not copied.
        attached: what goes beside the pickle.
        what: its text names the message in errors.
        session: the session that it was given to.
        size: bytes of its frame; from its admission on, those in the window: 0 for questions and their answers.
        state: where it is in its life (``call_states.py``).
        waiting: its ``Queued``, while it waits for room; then the lane's record of it.
    """

    __slots__ = ("attached", "call_id", "flags", "method", "pickled", "session", "size", "timeout", "to", "what")

    kind = FrameKind.REQUEST
    what: object

    def __init__(self, method: int, call_id: int, timeout: float, to: int) -> None:
        self.method = method
        self.call_id = call_id
        self.timeout = timeout
        self.to = to
        self.flags: int = 0
        self.pickled: Sequence[Any] = ()
        self.attached = NO_ATTACHMENTS
        self.session: Session | None = None
        self.size = 0
        self.state = NEW
        self.waiting = None

    def ends(self) -> float:
        """Return the time after which no call waits for it, in the agent's seconds; 0 for none."""
        return 0.0

    def tell(self, number: int, data: bytes) -> None:
        """Send ``data`` along, for the receiver's interceptor of that number."""
        if self.attached is NO_ATTACHMENTS:
            self.attached = Attachments()
        self.attached.extras = {**self.attached.extras, number: data}

    def keep(self, number: int, note: Any) -> None:
        """Keep ``note`` at the sender, for its interceptor of that number."""
        if self.attached is NO_ATTACHMENTS:
            self.attached = Attachments()
        self.attached.notes = {**self.attached.notes, number: note}

    def take_note(self, number: int) -> Any:
        """Remove and return the note of the interceptor of that number; ``None`` if there is none."""
        notes = self.attached.notes
        return notes.pop(number, None) if notes else None

    def drop_content(self) -> None:
        """Drop the content, because the frame is made. ``delivered`` and ``not_delivered`` do not need it."""
        self.pickled = ()
        if (attached := self.attached) is not NO_ATTACHMENTS:
            attached.tensors = attached.references = attached.buffers = NOTHING

    def restamp(self, head: bytes) -> bytes:
        flow, deadline = self.session.flow if self.session is not None else None, self.ends()
        if flow is None or not deadline:
            return head
        return restamp(head, max(deadline - flow.clock.now(), 1e-3))

    def done(self) -> bool:
        """Return whether no call waits for it any more."""
        return False

    def dequeued(self) -> None:
        """Note that it is sent now."""


class Incoming:
    """Reply that arrived, or a request (``ServerCall``): parsed, not unpickled. ``wire.frames.decode`` fills it.

    Attributes:
        kind: kind of its frame.
        session: the session on which it came.
        flags: see ``Flag``.
        method: number of the method, whose handler answers.
        call_id: number of the call.
        timeout: seconds that were left when it was sent; 0 for none.
        pickled: the pickle of its body.
        attached: what came beside the pickle.
        extras: bytes for interceptors, by the interceptor's number.
        size: bytes of its frame in the window: 0 for questions and their answers.
    """

    __slots__ = ("attached", "call_id", "extras", "flags", "method", "pickled", "session", "size", "timeout")

    kind = FrameKind.REPLY
    session: Session
    flags: int
    method: int
    call_id: int
    timeout: float
    pickled: Any
    attached: Attachments
    extras: dict[int, bytes]
    size: int

    @property
    def sender(self) -> int:
        """Number of the worker that sent it."""
        return self.session.number

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

    def entering(self, message: Incoming) -> None:
        """Enter, in this context, what requests shall carry that are made for a request before it is opened."""

    def opening(self, message: Incoming) -> None:
        """Handle a message whose body is opened, after its tensors are made and before it is unpickled.

        In the thread and context that will use the body.
        """

    def delivered(self, message: Outgoing) -> None:
        """Note that this request has arrived: its answer came. Its future completes before this or after."""

    def served(self, message: Incoming) -> None:
        """Note that this request was answered or dropped. May be called twice."""

    def replaced(self, message: Outgoing) -> None:
        """Note that another answer has taken the place of this one, which did not arrive. May be called twice."""

    def not_delivered(self, message: Outgoing) -> None:
        """Note that this message was not sent, or may not have arrived. Called only after ``sending``."""
