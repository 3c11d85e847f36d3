"""Header of the frames of requests and replies, and the two bytes with which every frame begins."""

from __future__ import annotations

import struct

HEAD = struct.Struct("<BBH4xQd")  # kind, flags, method, call id, seconds left (0: no deadline)


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
    DONE = 10  # answers of None, nothing but the ids of their calls


class Flag:
    """Second byte of a frame."""

    ERROR = 1  # a reply that holds an exception
    PLAIN = 2  # unpickling it runs no code but ours and NumPy's, so a reader thread may do it
    TABLES = 4  # tensors, references, buffers or extras follow the header
    EMPTY = 8  # there is no pickle: the body is None
    KEEP = 16  # a request that runs even if its caller has given up: others rely on it
    AGREED = 32  # a goodbye of a worker that leaves because all do
    ANSWER = 128  # a request whose reply is a message of its own, even if its body is None
    BARE = 64  # no pickle: the body is one tensor, or a call by the name in its place with tensors only


def restamp(head: bytes, seconds: float) -> bytes:
    """Return the header of a message that has ``seconds`` left now, if it has a deadline at all."""
    kind, flags, method, call_id, timeout = HEAD.unpack(head)
    return HEAD.pack(kind, flags, method, call_id, seconds) if timeout else head
