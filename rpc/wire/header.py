"""Header of the frames of requests and replies, and the two bytes with which every frame begins."""

from __future__ import annotations

import struct

FRAME_HEAD = struct.Struct("<BBH4xQd")  # kind, flags, method, call id, seconds left (0: no deadline)


class FrameKind:
    """First byte of a frame. Here and below plain integers are used: to combine ``IntFlag`` values takes a microsecond."""

    REQUEST = 1
    REPLY = 2
    CONTROL = 3
    ACKNOWLEDGE = 4
    GOODBYE = 5
    CREDIT = 6
    ASK = 7
    RELAY = 8  # a control frame on its way through a third worker
    EXPELLED = 9  # the job counts the receiver as lost
    DONE = 10  # answers of None: the ids of their calls


class Flag:
    """Second byte of a frame."""

    ERROR = 1  # a reply that holds an exception
    PLAIN = 2  # unpickling runs no code but ours and NumPy's, so a reader thread may do it
    TABLES = 4  # tensors, references, buffers or extras follow the header
    BUNDLE = 8  # the body is several bodies, each packed by itself (``bundle.py``)
    KEEP = 16  # a request that runs even if its caller has given up, because other workers rely on it
    AGREED = 32  # a goodbye of a worker that leaves because all do
    RAW = 32  # a request or reply whose body is bytes and arrays (``raw_body.py``)
    BARE = (
        64  # the body is None, one tensor, or a call by name with tensors, and maybe plain values (``calls/codec.py``)
    )
    GUEST = 128  # the tensors of a bare body are a library's usual arrays; its name is before the body


def restamp(head: bytes, seconds: float) -> bytes:
    """Return the header of a message with ``seconds`` left now; without a deadline it does not change."""
    kind, flags, method, call_id, timeout = FRAME_HEAD.unpack(head)
    return FRAME_HEAD.pack(kind, flags, method, call_id, seconds) if timeout else head
