"""Frames of the control queue: a batch of numbered messages, or the numbers that arrived."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from ..control import ControlMessage
from ..messages import Kind
from .frames import HEAD, Parts

ITEM = struct.Struct("<QHI")  # id, topic, bytes


def encode_control(messages: Iterable[ControlMessage]) -> Parts:
    """One frame with all of ``messages``."""
    return _frame(
        Kind.CONTROL, b"".join(ITEM.pack(item.id, item.topic, len(item.payload)) + item.payload for item in messages)
    )


def decode_control(frame: Any) -> Iterator[tuple[int, int, bytes]]:
    """The (id, topic, payload) of each message in a frame."""
    view, position = memoryview(frame), HEAD.size
    while position < len(view):
        number, topic, length = ITEM.unpack_from(view, position)
        position += ITEM.size
        yield number, topic, bytes(view[position : position + length])
        position += length


def encode_acknowledgement(ids: list[int]) -> Parts:
    """The frame that tells the sender what arrived."""
    return _frame(Kind.ACKNOWLEDGE, struct.pack(f"<{len(ids)}Q", *ids))


def decode_acknowledgement(frame: Any) -> tuple[int, ...]:
    """The ids that the peer has."""
    return struct.unpack_from(f"<{(len(frame) - HEAD.size) // 8}Q", frame, HEAD.size)


def goodbye(reason: str) -> Parts:
    """The last frame of a connection whose sender leaves."""
    return _frame(Kind.GOODBYE, reason.encode())


def read_goodbye(frame: Any) -> str:
    """Why the sender leaves."""
    return bytes(memoryview(frame)[HEAD.size :]).decode()


def _frame(kind: int, body: bytes) -> Parts:
    return [HEAD.pack(kind, 0, 0, 0, 0.0), body]
