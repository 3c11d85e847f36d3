"""Messages between workers, one small slotted class per kind, before it is bytes (``wire/``) or has a lane (``lanes/``).

A request carries a method number, and the handler of that number (``agent.server.serve``) answers. Each layer owns the numbers
of its methods and topics: below 16 they are rpc's, from 16 rref's, from 32 autograd_dist's, from 128 free for users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.extend import Tensor

if TYPE_CHECKING:
    from .flow import Flow


class Kind:
    """First byte of a frame. Plain integers, here and below: an ``IntFlag`` costs a microsecond each time it is combined."""

    REQUEST = 1
    REPLY = 2
    CONTROL = 3
    ACKNOWLEDGE = 4
    GOODBYE = 5
    CREDIT = 6
    ASK = 7
    RELAY = 8  # a control frame on its way through a third worker
    EXPELLED = 9  # the receiver is lost, as far as its job is concerned


class Flag:
    """Second byte of a frame."""

    ERROR = 1  # a reply that holds an exception
    PLAIN = 2  # unpickling it runs no code but ours and NumPy's, so a reader thread may do it
    TABLES = 4  # tensors, references, buffers or extras follow the header
    EMPTY = 8  # there is no pickle: the body is None
    KEEP = 16  # a request that runs even if its caller has given up: others rely on it


class Method:
    """What a request asks for."""

    CALL = 1


class Topic:
    """What a control message is about."""

    MEMBERSHIP = 1
    QUIESCENCE = 2
    CANCEL = 3


class Outgoing:
    """A request or a reply on its way out: the pickle and the tables that interceptors work on.

    ``pickled`` is the pickle in pieces, so that a large ``bytes`` object in it is not copied.
    ``tensors`` and ``references`` are the objects that the pickle replaced by an index; ``buffers`` the raw memory of
    arrays inside it; ``extras`` what interceptors want to say to their other half, by their number,
    ``notes`` what they keep for themselves.
    """

    __slots__ = (
        "buffers",
        "call_id",
        "extras",
        "flags",
        "kind",
        "method",
        "notes",
        "pickled",
        "references",
        "tensors",
        "timeout",
        "to",
    )

    def __init__(self, kind: int, method: int, call_id: int, timeout: float, to: int) -> None:
        self.kind = kind
        self.method = method
        self.call_id = call_id
        self.timeout = timeout
        self.to = to
        self.flags: int = 0
        self.pickled: list[Any] = []
        self.tensors: list[Tensor] = []
        self.references: list[Any] = []
        self.buffers: list[Any] = []
        self.extras: dict[int, bytes] = {}
        self.notes: dict[int, Any] = {}

    def let_go(self) -> None:
        """The frame is made: keep only what ``delivered`` and ``not_delivered`` need."""
        self.pickled = []
        self.tensors, self.references, self.buffers = [], [], []


class Incoming:
    """A request or a reply that arrived: parsed, not unpickled.

    ``arrays`` are the tensors' arrays and ``requires_grad`` their flags; ``tensors`` is filled when the body is opened,
    ``references`` by the interceptor that understands them. ``problem``: why the body cannot be opened here, if so.
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
    )

    flow: Flow  # where its credit goes, and how much that is: the agent sets both when it arrives
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
        self.arrays: list[Any] = []
        self.requires_grad: list[int] = []
        self.tensors: list[Tensor] = []
        self.references: list[Any] = []
        self.buffers: list[Any] = []
        self.extras: dict[int, bytes] = {}


class Interceptor:
    """Sees every request and reply that leaves or arrives; the ordered list of them is the agent's.

    What ``sending`` writes into ``message.extras[number]`` the interceptor of the same number reads on the other side.
    """

    number: int = 0

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
        """The answer to this request arrived, so it did."""

    def not_delivered(self, message: Outgoing) -> None:
        """``sending`` was called, but the message did not go out, or nobody knows whether it arrived."""
