"""Small frames: control messages, acknowledgements, answers of ``None``, credits, relayed frames and goodbyes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.errors import SerializationError
from .header import FRAME_HEAD, Flag, FrameKind

if TYPE_CHECKING:
    from .frames import Parts

AMOUNT = struct.Struct("<qq")  # bytes, messages; signed, because a goal may be negative
ITEM = struct.Struct("<QHI")  # id, topic, bytes
DONE_HEAD = FRAME_HEAD.pack(FrameKind.DONE, 0, 0, 0, 0.0)
CONTROL_LENGTH = struct.Struct("<I")
RELAY = struct.Struct("<IIB")  # ranks of author and receiver, how many more workers may pass it on


class Amount(NamedTuple):
    """Numbers of bytes and of messages."""

    bytes: int
    messages: int


class ControlMessage:
    """One message of a control queue.

    Args:
        id: number of the message in its queue, counting up.
        payload: bytes for the handler.
        topic: number of the handler, and so of the protocol that the message belongs to.

    Attributes:
        attempts: how often it was sent.
        sent_at: when it was last sent.
    """

    __slots__ = ("attempts", "id", "payload", "sent_at", "topic")

    def __init__(self, id: int, payload: bytes, topic: int) -> None:  # noqa: A002
        self.id = id
        self.payload = payload
        self.topic = topic
        self.attempts = 0
        self.sent_at = 0.0

    def __repr__(self) -> str:
        return f"ControlMessage(id={self.id}, topic={self.topic}, {len(self.payload)} bytes, sent {self.attempts}x)"


def encode_control(messages: Iterable[ControlMessage]) -> Parts:
    """Return one frame with all of ``messages``."""
    return _frame(
        FrameKind.CONTROL,
        b"".join(ITEM.pack(item.id, item.topic, len(item.payload)) + item.payload for item in messages),
    )


def decode_control(frame: Any) -> Iterator[tuple[int, int, bytes]]:
    """Yield the (id, topic, payload) of each message in a frame."""
    view, position = memoryview(frame), FRAME_HEAD.size
    while position < len(view):
        number, topic, length = ITEM.unpack_from(view, position)
        position += ITEM.size
        yield number, topic, bytes(view[position : position + length])
        position += length


def encode_acknowledgement(ids: list[int]) -> Parts:
    """Return the frame that tells the sender which control messages arrived."""
    return _frame(FrameKind.ACKNOWLEDGE, encode_ids(ids))


def decode_acknowledgement(frame: Any) -> tuple[int, ...]:
    """Return the ids of the control messages that the peer has."""
    return decode_ids(_body(frame))


def encode_done(call_ids: list[int]) -> bytes:
    """Return the frame that answers calls with ``None``."""
    return struct.pack(f"<24s{len(call_ids)}Q", DONE_HEAD, *call_ids)


def decode_done(frame: Any) -> tuple[int, ...]:
    """Return the ids of the calls that were answered."""
    return struct.unpack(f"<24x{(len(frame) - FRAME_HEAD.size) // 8}Q", frame)  # raises if bytes are left over


def encode_ids(ids: list[int]) -> bytes:
    """Return the bytes of ids of messages or calls."""
    return struct.pack(f"<{len(ids)}Q", *ids)


def decode_ids(data: Any) -> tuple[int, ...]:
    """Return the ids that ``encode_ids`` encoded."""
    return struct.unpack(f"<{len(data) // 8}Q", data)  # raises if bytes are left over


def encode_credit(used: Amount) -> Parts:
    """Return the frame that tells how much its sender has used."""
    return _frame(FrameKind.CREDIT, AMOUNT.pack(*used))


def encode_ask(goal: Amount) -> Parts:
    """Return the frame that asks for a credit as soon as its receiver has used ``goal``."""
    return _frame(FrameKind.ASK, AMOUNT.pack(*goal))


def decode_amount(frame: Any) -> Amount:
    """Return the amount in a credit, or in a request for a credit."""
    return Amount(*AMOUNT.unpack_from(frame, FRAME_HEAD.size))


def encode_relay(author: int, receiver: int, hops: int, frame: Any) -> Parts:
    """Return a frame that carries another control frame through third workers.

    Args:
        author: rank of the sender.
        receiver: rank of the receiver.
        hops: how many more workers may pass it on.
        frame: the control frame.
    """
    return _frame(FrameKind.RELAY, RELAY.pack(author, receiver, hops) + bytes(frame))


def decode_relay(frame: Any) -> tuple[int, int, int, bytes]:
    """Return author, receiver, hops left and the frame inside."""
    author, receiver, hops = RELAY.unpack_from(frame, FRAME_HEAD.size)
    return author, receiver, hops, bytes(memoryview(frame)[FRAME_HEAD.size + RELAY.size :])


def encode_goodbye(reason: str, agreed: bool, report: bytes) -> Parts:
    """Return the last frame of a session whose sender leaves.

    Args:
        reason: why, in words.
        agreed: it leaves because all workers do.
        report: its last report about other workers.
    """
    text = reason.encode()
    return _frame(FrameKind.GOODBYE, CONTROL_LENGTH.pack(len(text)) + text + report, Flag.AGREED if agreed else 0)


def decode_goodbye(frame: Any) -> tuple[str, bool, bytes]:
    """Return the reason, whether all workers leave, and the last report of the sender of a goodbye."""
    body = _body(frame)
    (length,) = CONTROL_LENGTH.unpack_from(body)
    end = CONTROL_LENGTH.size + length
    if end > len(body):
        raise SerializationError(f"the reason in a goodbye has {length} bytes, its frame {len(frame)}")
    return bytes(body[CONTROL_LENGTH.size : end]).decode(), bool(frame[1] & Flag.AGREED), bytes(body[end:])


def expelled(reason: str) -> Parts:
    """Return the last frame of a session whose receiver counts as lost."""
    return _frame(FrameKind.EXPELLED, reason.encode())


def read_reason(frame: Any) -> str:
    """Return the reason in a frame that ends a session because its receiver counts as lost."""
    return bytes(_body(frame)).decode()


def _body(frame: Any) -> memoryview:
    if len(frame) < FRAME_HEAD.size:
        raise SerializationError(f"a frame of {len(frame)} bytes ends in its header")
    return memoryview(frame)[FRAME_HEAD.size :]


def _frame(kind: int, body: bytes, flags: int = 0) -> Parts:
    return [FRAME_HEAD.pack(kind, flags, 0, 0, 0.0), body]
